[(line_comment) (block_comment)] @comment
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)] @function
(class_declaration) @class
(interface_declaration) @interface
(enum_declaration) @enum
(record_declaration) @record
(annotation_type_declaration) @interface

; calls
(method_invocation name: (identifier) @call)
(object_creation_expression type: [(type_identifier) @call (generic_type . (type_identifier) @call)])
