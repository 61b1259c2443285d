[(line_comment) (block_comment)] @comment
[(function_item) (function_signature_item)] @function
(struct_item) @struct
(enum_item) @enum
(union_item) @union
(trait_item) @trait
(type_item) @type
(macro_definition) @macro
(impl_item) @holder

; calls
(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call)
  (scoped_identifier name: (identifier) @call) (generic_function function: [(identifier) @call
  (field_expression field: (field_identifier) @call) (scoped_identifier name: (identifier) @call)])])
(macro_invocation macro: (identifier) @call)
