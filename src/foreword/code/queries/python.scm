(comment) @comment
(function_definition) @function
(class_definition) @class
(decorated_definition) @wrapper

; calls
(call function: [(identifier) @call (attribute attribute: (identifier) @call)])
(decorator [(identifier) @call (attribute attribute: (identifier) @call)])
