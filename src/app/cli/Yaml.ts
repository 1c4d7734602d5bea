/** YAML parser. A module of its own, so that it is loaded only when needed. */
import { parse } from "yaml"

/**
 * The value of `text`; throws for invalid YAML. Aliases may expand to at most 100 values, so that a short text stays
 * small.
 */
export const parseYaml = (text: string): unknown => parse(text, { maxAliasCount: 100 })
