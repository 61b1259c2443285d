"""Write Foreword into the settings of coding agents so that it can all be undone: detect, plan, apply, undo."""
