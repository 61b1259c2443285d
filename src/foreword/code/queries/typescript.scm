; inherits: ecmascript
(abstract_class_declaration) @class
(public_field_definition name: (_) value: [(arrow_function) (function_expression)]) @function
(interface_declaration) @interface
(type_alias_declaration) @type
(enum_declaration) @enum

; calls

