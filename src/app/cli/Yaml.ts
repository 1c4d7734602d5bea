/** The parser of YAML, loaded when a file asks for it. */
export { parse } from "yaml"
