(comment) @comment
[(method) (singleton_method)] @function
(class) @class
(module) @module

; calls
(call method: [(identifier) (constant)] @call)
