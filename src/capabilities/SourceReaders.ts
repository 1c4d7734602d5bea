/**
 * Readers of other systems, by name. A source of type CONNECTOR names one. A reader works in steps. The documents of a
 * step and the position of the next step are stored together, so that an interrupted reading continues there.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Json from "../domain/Json.ts"
import type { FormField, ReaderForm, Words } from "../domain/knowledge/SourceReader.ts"
import type { DocumentParser } from "./DocumentParser.ts"
import type { OutboundHttp } from "./OutboundHttp.ts"

/** Why a source could not be read. `code` is stable, `message` says what the customer can do. */
export class ReaderError extends Schema.TaggedError<ReaderError>()("ReaderError", {
  code: Schema.String,
  message: Schema.String,
  /** True when the same attempt may succeed later. */
  retryable: Schema.Boolean,
  /** The pause that the site requested. */
  retryAfter: Schema.optionalWith(Schema.DurationFromSelf, { exact: true })
}) {}

/** An error that another attempt would meet again. */
export const permanentError = (code: string, message: string) =>
  new ReaderError({ code, message, retryable: false })

export interface SteppedDocument {
  /** Identifies the document within its source; its address if it has one. */
  readonly uri: string
  readonly title: string
  readonly format: "markdown" | "text"
  readonly content: string
  /** Must change whenever the document does. `known` returns it in the next pass. */
  readonly revision?: string
  /**
   * The labels that may read it, if access is limited. It is added only to a source all of whose labels are among
   * these, and skipped otherwise.
   */
  readonly labels?: ReadonlyArray<string>
}

/** The result of one step. */
export interface ReadStep<Cursor, Position> {
  readonly documents: ReadonlyArray<SteppedDocument>
  /** Documents that exist and have the revision of `known`. */
  readonly unchanged?: ReadonlyArray<string>
  /** Documents that exist and could not be read now, each with a reason of one word. Those that are live stay. */
  readonly unread?: ReadonlyArray<{ readonly uri: string; readonly reason: string }>
  /** Deleted documents, if the system reports them. */
  readonly removed?: ReadonlyArray<string>
  /** Skipped documents, each with a reason of one word. */
  readonly skipped?: ReadonlyArray<{ readonly uri: string; readonly reason: string }>
  /**
   * `more` is the position of the next step. `done` ends the pass and is the cursor of the next one. Documents that a
   * `complete` pass did not name are deleted; otherwise they stay.
   */
  readonly next: { readonly more: Position } | { readonly done: Cursor; readonly complete: boolean }
}

/** The input of a step. */
export interface ReadingState<Cursor, Position> {
  /** The cursor that the last finished pass returned; null for the first pass and for a full one. */
  readonly cursor: Cursor | null
  /** The position at which the step begins; null at the first one of a pass. */
  readonly position: Position | null
  /** The revision of the live document. */
  readonly known: (uri: string) => string | undefined
}

export type ReaderStepServices = OutboundHttp | DocumentParser

type Values = Readonly<Record<string, unknown>>

export interface SourceReader extends ReaderForm {
  /** The values of missing settings, which may depend on the others. A setting with this value counts as missing. */
  readonly defaults?: (settings: Values) => Values
  /** False if no document has `labels`. */
  readonly limitsDocuments?: boolean
  /** Settings with addresses that the source's secrets are sent to. If one changes, secrets must be given again. */
  readonly addresses: ReadonlyArray<string>
  /** The settings to store, or what is wrong with them. */
  readonly checked: (given: unknown) => Effect.Effect<Values, ParseResult.ParseError>
  /** A stored cursor or position that the reader no longer understands is treated as missing. */
  readonly step: (
    settings: unknown,
    state: ReadingState<unknown, unknown>
  ) => Effect.Effect<ReadStep<unknown, unknown>, ReaderError, ReaderStepServices>
}

interface FieldNote {
  readonly label: Words
  readonly hint?: Words
  readonly secret?: boolean
  readonly address?: boolean
}

const fieldNoteId = Symbol.for("spoke/SourceReaders/FieldNote")

/** Annotates a setting: how a form asks for it, and whether it is a secret or an address that secrets are sent to. */
export const setting = (note: FieldNote) => ({ [fieldNoteId]: note })

const noteOf = (ast: AST.AST): FieldNote | undefined =>
  Option.getOrUndefined(AST.getAnnotation<FieldNote>(ast, fieldNoteId))

/** The encoded side of a schema. */
const encodedSide = (ast: AST.AST): AST.AST =>
  AST.isRefinement(ast) || AST.isTransformation(ast) ? encodedSide(ast.from) : ast

const choicesOf = (ast: AST.AST): ReadonlyArray<string> => {
  if (AST.isUnion(ast)) return ast.types.flatMap(choicesOf)
  return AST.isLiteral(ast) ? [String(ast.literal)] : []
}

const kindOf = (ast: AST.AST, secret: boolean): FormField["kind"] => {
  if (secret) return "secret"
  if (AST.isBooleanKeyword(ast)) return "switch"
  if (AST.isNumberKeyword(ast)) return "number"
  if (AST.isTupleType(ast)) return "list"
  return choicesOf(ast).length > 0 ? "choice" : "text"
}

const fieldsOf = (ast: AST.AST): ReadonlyArray<readonly [FormField, FieldNote | undefined]> => {
  const struct = encodedSide(ast)
  if (!AST.isTypeLiteral(struct)) return []
  return struct.propertySignatures.map(({ isOptional, name, type }) => {
    const note = noteOf(type)
    const encodedType = encodedSide(type)
    const choices = choicesOf(encodedType)
    const field: FormField = {
      name: String(name),
      kind: kindOf(encodedType, note?.secret === true),
      required: !isOptional,
      label: note?.label ?? { en: String(name) },
      ...(note?.hint === undefined ? {} : { hint: note.hint }),
      ...(choices.length === 0 ? {} : { choices })
    }
    return [field, note] as const
  })
}

const invalid = () =>
  permanentError("invalid_config", "The source's settings do not fit its reader. Change them and sync again.")

/**
 * Creates a reader. `settings` is a struct of JSON values whose fields are annotated by {@link setting}. `cursor` and
 * `position` are stored between passes and between steps.
 */
export const sourceReader = <
  Settings,
  Encoded extends Values,
  Cursor,
  CursorJson,
  Position,
  PositionJson
>(definition: {
  readonly name: string
  readonly title: Words
  readonly description: Words
  readonly settings: Schema.Schema<Settings, Encoded>
  readonly defaults?: (settings: Values) => Partial<Encoded>
  readonly cursor: Schema.Schema<Cursor, CursorJson>
  readonly position: Schema.Schema<Position, PositionJson>
  /** False if no document has `labels`: all of them then stay when the source is opened to more readers. */
  readonly limitsDocuments?: boolean
  readonly step: (
    settings: Settings,
    state: ReadingState<Cursor, Position>
  ) => Effect.Effect<ReadStep<Cursor, Position>, ReaderError, ReaderStepServices>
}): SourceReader => {
  const {
    cursor,
    defaults,
    description,
    limitsDocuments = true,
    name,
    position,
    settings,
    title
  } = definition
  const decode = Json.decodeUnknown(settings, { onExcessProperty: "error" })
  const encode = Schema.encode(settings)
  const cursorOf = Schema.decodeUnknownOption(cursor)
  const positionOf = Schema.decodeUnknownOption(position)
  const fields = fieldsOf(settings.ast)
  return {
    name,
    title,
    description,
    limitsDocuments,
    ...(defaults === undefined ? {} : { defaults }),
    fields: fields.map(([field]) => field),
    addresses: fields.flatMap(([field, note]) => (note?.address === true ? [field.name] : [])),
    checked: (given) => Effect.flatMap(decode(given), encode),
    step: (given, state) =>
      Effect.gen(function* () {
        const decoded = yield* Effect.mapError(decode(given), invalid)
        const { next, ...rest } = yield* definition.step(decoded, {
          known: state.known,
          cursor: Option.getOrNull(cursorOf(state.cursor)),
          position: Option.getOrNull(positionOf(state.position))
        })
        return "more" in next
          ? { ...rest, next: { more: yield* Effect.orDie(Schema.encode(position)(next.more)) } }
          : {
              ...rest,
              next: { done: yield* Effect.orDie(Schema.encode(cursor)(next.done)), complete: next.complete }
            }
      })
  }
}

/** By name, as used in a source's config. */
export const registered = (readers: Iterable<SourceReader>): ReadonlyMap<string, SourceReader> =>
  new Map(Array.from(readers, (reader) => [reader.name, reader] as const))

export class SourceReaders extends Context.Reference<SourceReaders>()("capabilities/SourceReaders", {
  defaultValue: (): ReadonlyMap<string, SourceReader> => new Map()
}) {}
