/** A reply that has to be a JSON object of the caller's schema: what the model is told, and what is made of its text. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { NotConfigured } from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { JsonObject, type JsonValue } from "../../domain/Text.ts"
import { MarkScanner, withoutMarks } from "./grounding/Marks.ts"
import * as Arguments from "./tools/Arguments.ts"

/** What is told to the model beside its instructions. */
export const rule = (schema: JsonObject): string =>
  `Reply with one JSON object that fits the JSON Schema below, and with nothing else: no other words and no code fence. Cite
sources in its free texts alone; never in a value that has to be exact.\n${JSON.stringify(schema)}`

/** What the model is told of a reply that cannot be used. */
export const correction = (problems: ReadonlyArray<string>): string =>
  `This reply cannot be used: ${problems.join("; ")}. Reply again with the whole JSON object, and with nothing else.`

export interface ObjectReply {
  /** The object as JSON, without marks. */
  readonly reply: string
  /** Its texts with their marks, to be compared with what they cite. */
  readonly marked: string
  /** The passages that its texts mark. */
  readonly numbers: ReadonlySet<number>
}

const isList = (value: JsonValue): value is ReadonlyArray<JsonValue> => Array.isArray(value)

/** Models put a fence around JSON, whatever they are told. */
const unfenced = (text: string): string => {
  const trimmed = text.trim()
  const end = trimmed.indexOf("\n")
  return trimmed.startsWith("```") && trimmed.endsWith("```") && end > 0
    ? trimmed.slice(end, -3).trim()
    : trimmed
}

/** Takes the marks of passages out of texts, and remembers them. */
class Unmarking {
  readonly numbers = new Set<number>()
  readonly texts: Array<string> = []
  private readonly known: ReadonlySet<number> | null

  constructor(known: ReadonlySet<number> | null) {
    this.known = known
  }

  value(value: JsonValue): JsonValue {
    if (typeof value === "string") return this.text(value)
    if (typeof value !== "object" || value === null) return value
    return isList(value) ? value.map((item) => this.value(item)) : this.object(value)
  }

  object(object: JsonObject): JsonObject {
    return Object.fromEntries(Object.entries(object).map(([name, member]) => [name, this.value(member)]))
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
 * The object that `text` is, or what is wrong with it in words for the model. `known` are the passages that it may cite; null
 * for an agent without sources, whose texts have no marks. `restored` puts values into the places of their placeholders.
 */
export const read = (
  schema: JsonObject,
  text: string,
  known: ReadonlySet<number> | null,
  restored: (object: JsonObject) => JsonObject = (object) => object
): Either.Either<ObjectReply, ReadonlyArray<string>> => {
  const parsed = Json.parse(unfenced(text))
  if (Either.isLeft(parsed)) return Either.left([parsed.left.message])
  if (!isJsonObject(parsed.right)) return Either.left(["it is not a JSON object of finite numbers"])
  const unmarking = new Unmarking(known)
  const object = unmarking.object(restored(parsed.right))
  const problems = Arguments.complaints(schema, object)
  if (problems.length > 0) return Either.left(problems)
  const { numbers, texts } = unmarking
  return Either.right({ reply: JSON.stringify(object), marked: texts.join("\n\n"), numbers })
}

/** The object of a reply that {@link read} made. */
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
