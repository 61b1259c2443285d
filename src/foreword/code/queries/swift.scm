[(comment) (multiline_comment)] @comment
[(function_declaration) (init_declaration)] @function
(class_declaration) @class
(protocol_declaration) @protocol

; calls
(call_expression . [(simple_identifier) @call
  (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call))])
