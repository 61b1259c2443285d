"""Measure how well Foreword finds memories, keeps silent and spends tokens, each against a baseline in the same run."""
