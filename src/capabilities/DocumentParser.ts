/**
 * From the bytes of a document to readable text. The type is taken from the bytes,
 * not from the name; a hostile file fails its own parse and nothing else.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** One document; the three hints help where the bytes alone leave a choice. */
export const ParseRequest = Schema.Struct({
  bytes: Schema.Uint8ArrayFromSelf,
  fileName: optional(Schema.String),
  /** The `content-type` it was sent with, its `charset` included. */
  contentType: optional(Schema.String),
  /** The address of the document, against which relative links are resolved. */
  url: optional(Schema.String)
})
export type ParseRequest = typeof ParseRequest.Type

export const ParsedDocument = Schema.Struct({
  title: Schema.String,
  format: Schema.Literal("markdown", "text"),
  /** Not empty, without NUL and lone surrogates. */
  content: Schema.String,
  mediaType: Schema.String,
  /** The page's canonical address (`rel=canonical`), absolute. */
  canonicalUrl: optional(Schema.String),
  /** Absolute http and https URLs without fragments, each once, in the order of the page; bounded. */
  links: optional(Schema.Array(Schema.String))
})
export type ParsedDocument = typeof ParsedDocument.Type

export const ParseErrorCode = Schema.Literal(
  "encrypted",
  "no_text_layer",
  "unsupported_type",
  "malformed",
  "too_large",
  "too_many_pages",
  "timed_out",
  "out_of_memory",
  "empty"
)
export type ParseErrorCode = typeof ParseErrorCode.Type

/** `message` is for the customer: what is wrong with the document and what to do about it. */
export class ParseError extends Schema.TaggedError<ParseError>()("ParseError", {
  code: ParseErrorCode,
  message: Schema.String
}) {}

/** What one document may take; everything past it is a {@link ParseError}. */
export const ParseLimits = Schema.Struct({
  maxPages: Schema.Int,
  /** Of the resulting text. */
  maxCharacters: Schema.Int
})
export type ParseLimits = typeof ParseLimits.Type

export class DocumentParser extends Context.Tag("capabilities/DocumentParser")<
  DocumentParser,
  {
    /** One document at a time; interruption stops the work at once. */
    readonly parse: (request: ParseRequest) => Effect.Effect<ParsedDocument, ParseError>
  }
>() {}
