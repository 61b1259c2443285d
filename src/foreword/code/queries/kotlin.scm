[(line_comment) (block_comment)] @comment
(function_declaration) @function
(class_declaration) @class
(object_declaration) @object

; calls
(call_expression . [(identifier) @call (navigation_expression (identifier) @call .)])
