"""Sets of memories and questions -> how well Foreword finds, keeps silent and spends its tokens, beside a baseline."""
