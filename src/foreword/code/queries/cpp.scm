; inherits: c
(class_specifier name: (_) body: (_)) @class
(template_declaration) @wrapper

; calls
(call_expression function: [(qualified_identifier name: (identifier) @call)
  (template_function name: (identifier) @call)])
(new_expression type: (type_identifier) @call)
