[(comment) (block_comment)] @comment
[(function_definition) (function_declaration)] @function
(class_definition) @class
(object_definition) @object
(trait_definition) @trait
(enum_definition) @enum

; calls
(call_expression function: [(identifier) @call (field_expression field: (identifier) @call)])
(instance_expression (type_identifier) @call)
