; inherits: ecmascript
(field_definition property: (_) value: [(arrow_function) (function_expression)]) @function

; calls
(jsx_opening_element name: (identifier) @call)
(jsx_self_closing_element name: (identifier) @call)
