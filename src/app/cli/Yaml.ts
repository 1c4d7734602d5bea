/** YAML; a module of its own, so that the parser is loaded only where a file asks for it. */
import { parse } from "yaml"

/** The value of `text`; throws where it is no YAML. Aliases stand for at most 100 values, so that a short text stays small. */
export const parseYaml = (text: string): unknown => parse(text, { maxAliasCount: 100 })
