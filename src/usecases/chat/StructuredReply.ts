/**
 * Replies that must be a JSON object of the caller's schema: the instruction for the model, and the parsing of its
 * text.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { NotConfigured } from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { mapJsonObject } from "../../domain/JsonValue.ts"
import { JsonObject } from "../../domain/Text.ts"
import { MarkScanner, withoutMarks } from "./grounding/Marks.ts"
import * as Arguments from "./tools/Arguments.ts"

/** Added to the model's instructions. */
export const rule = (schema: JsonObject): string =>
  `Reply with one JSON object that fits the JSON Schema below, and with nothing else: no other words and no code fence. Cite
sources in its free texts alone; never in a value that has to be exact.\n${JSON.stringify(schema)}`

/** The message to the model about a reply that cannot be used. */
export const correction = (problems: ReadonlyArray<string>): string =>
  `This reply cannot be used: ${problems.join("; ")}. Reply again with the whole JSON object, and with nothing else.`

export interface ObjectReply {
  /** The object as JSON, without citation marks. */
  readonly reply: string
  /** The object's texts with their marks, for the grounding check. */
  readonly marked: string
  /** Numbers of the passages that its texts cite. */
  readonly numbers: ReadonlySet<number>
}

/** Models often wrap JSON in a code fence although they are told not to. */
const unfenced = (text: string): string => {
  const trimmed = text.trim()
  const end = trimmed.indexOf("\n")
  return trimmed.startsWith("```") && trimmed.endsWith("```") && end > 0
    ? trimmed.slice(end, -3).trim()
    : trimmed
}

/** Removes citation marks from texts and collects their numbers. */
class MarkRemover {
  readonly numbers = new Set<number>()
  readonly texts: Array<string> = []
  private readonly known: ReadonlySet<number> | null

  constructor(known: ReadonlySet<number> | null) {
    this.known = known
  }

  object(object: JsonObject): JsonObject {
    return mapJsonObject(object, { text: (text) => this.text(text), name: (name) => name })
  }

  private text(text: string): string {
    if (this.known === null) return text
    const scanner = new MarkScanner(this.known, { removesOthers: true })
    let marked = ""
    for (const piece of [...scanner.push(text), ...scanner.flush()]) {
      if (piece._tag === "Mark") this.numbers.add(piece.number)
      marked += piece._tag === "Text" ? piece.text : `[${piece.number}]`
    }
    this.texts.push(marked)
    return withoutMarks(marked)
  }
}

const isJsonObject = Schema.is(JsonObject)

/**
 * Parses `text`: the object, or problems in words for the model. `known` are the passages that it may cite; null for an
 * agent without sources, whose texts have no marks. `restore` replaces placeholders with their values.
 */
export const read = (
  schema: JsonObject,
  text: string,
  known: ReadonlySet<number> | null,
  restore: (object: JsonObject) => JsonObject = (object) => object
): Either.Either<ObjectReply, ReadonlyArray<string>> => {
  const parsed = Json.parse(unfenced(text))
  if (Either.isLeft(parsed)) return Either.left([parsed.left.message])
  if (!isJsonObject(parsed.right)) return Either.left(["it is not a JSON object of finite numbers"])
  const remover = new MarkRemover(known)
  const object = remover.object(restore(parsed.right))
  const problems = Arguments.validationProblems(schema, object)
  if (problems.length > 0) return Either.left(problems)
  const { numbers, texts } = remover
  return Either.right({ reply: JSON.stringify(object), marked: texts.join("\n\n"), numbers })
}

/** The object of a reply that {@link read} returned. */
export const valueOf = (reply: string): { readonly object?: JsonObject } =>
  Either.match(Json.parse(reply), {
    onLeft: () => ({}),
    onRight: (object) => (isJsonObject(object) ? { object } : {})
  })

/** Without a language model replies are extracts, which fit no schema. */
export const notConfigured = () =>
  new NotConfigured({
    message:
      "A responseSchema needs a language model, and this server answers with extracts. Set OPENAI_API_KEY, and OPENAI_BASE_URL " +
      "for a provider other than OpenAI."
  })
