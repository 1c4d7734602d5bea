/** Masking of personal data before it reaches an agent's model, tools and traces. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { parse } from "./MaskingPattern.ts"
import { ToolName } from "./Tool.ts"
import { withDefault } from "../Optional.ts"
import { withMessage } from "../Text.ts"

const MaskedKind = Schema.Literal("email", "phone", "card")

/** The placeholder kind for text that looks like a placeholder but is not one. */
export const literalKind = "text"
const reservedNames: ReadonlySet<string> = new Set([...MaskedKind.literals, literalKind])

const isUnique = (values: ReadonlyArray<string>) => new Set(values).size === values.length

const PatternName = Schema.String.pipe(
  Schema.pattern(
    /^[a-z](?:[a-z-]{0,30}[a-z])?$/,
    withMessage("Expected lower-case letters, with - between them")
  ),
  Schema.filter((name) => !name.includes("--") || "Expected lower-case letters, with - between them"),
  Schema.filter((name) => !reservedNames.has(name) || "Expected another name: this one is reserved")
)

/** Maximum length of a pattern, and maximum number of patterns of an agent. */
const maxPatternLength = 200
const maxPatterns = 10

const Pattern = Schema.String.pipe(
  Schema.minLength(1),
  Schema.maxLength(maxPatternLength),
  Schema.filter((pattern) =>
    Either.match(parse(pattern), { onLeft: (problem) => problem, onRight: () => true })
  )
)

const Kinds = Schema.Array(MaskedKind).pipe(
  Schema.filter((kinds) => isUnique(kinds) || "Expected each kind once")
)
const Patterns = Schema.Array(Schema.Struct({ name: PatternName, pattern: Pattern })).pipe(
  Schema.maxItems(maxPatterns),
  Schema.filter((patterns) => isUnique(patterns.map(({ name }) => name)) || "Expected each name once")
)
const Tools = Schema.Array(ToolName).pipe(Schema.maxItems(64))

export const Masking = Schema.Struct({
  kinds: Kinds,
  patterns: Patterns,
  /** Whether passages of sources are masked for the model too. */
  sources: Schema.Boolean,
  /** Tools that receive the values instead of their placeholders. */
  tools: Tools
})
export type Masking = typeof Masking.Type

/** Omitted fields: all kinds are masked, and nothing else. */
export const MaskingInput = Schema.Struct({
  kinds: withDefault(Kinds, () => MaskedKind.literals),
  patterns: withDefault(Patterns, () => []),
  sources: withDefault(Schema.Boolean, () => false),
  tools: withDefault(Tools, () => [])
})
