(comment) @comment
(function_definition) @function

; calls
(command name: (command_name (word) @call))
