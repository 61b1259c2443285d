(comment) @comment
[(function_declaration) (method_declaration)] @function
(type_spec type: (struct_type)) @struct
(type_spec type: (interface_type)) @interface
(type_spec type: [(type_identifier) (qualified_type) (map_type) (slice_type) (array_type) (pointer_type)
  (function_type) (channel_type) (generic_type)]) @type

; calls
(call_expression function: [(identifier) @call (selector_expression field: (field_identifier) @call)])
