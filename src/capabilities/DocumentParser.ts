/**
 * Converts the bytes of a document to text. The type is detected from the bytes, not from the name. A malicious file
 * fails only its own parse.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { optional } from "../domain/Optional.ts"

/** One document. The three hints are used where the bytes are ambiguous. */
export const ParseRequest = Schema.Struct({
  bytes: Schema.Uint8ArrayFromSelf,
  fileName: optional(Schema.String),
  /** The `content-type` it was sent with, including `charset`. */
  contentType: optional(Schema.String),
  /** The address of the document, the base of relative links. */
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
  /** For the customer: which part of a damaged document is missing in `content`. */
  incomplete: optional(Schema.String),
  /** The values of the page's `<meta name="robots">`, separated by commas. */
  robots: optional(Schema.String),
  /** Absolute http and https URLs without fragments, each once, in the order of the page; their number is bounded. */
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

/** `message` is for the customer: what is wrong with the document and how to fix it. */
export class ParseError extends Schema.TaggedError<ParseError>()("ParseError", {
  code: ParseErrorCode,
  message: Schema.String
}) {}

/** True where another try may succeed: the process had no time or no memory for the document. */
export const mayParseLater = ({ code }: { readonly code: string }): boolean =>
  code === "timed_out" || code === "out_of_memory"

/** Limits of one document. Exceeding one is a {@link ParseError}. */
export const ParseLimits = Schema.Struct({
  maxPages: Schema.Int,
  /** Maximum length of the resulting text. */
  maxCharacters: Schema.Int
})
export type ParseLimits = typeof ParseLimits.Type

export class DocumentParser extends Context.Tag("capabilities/DocumentParser")<
  DocumentParser,
  {
    /** Parses one document. Interruption stops the work at once. */
    readonly parse: (request: ParseRequest) => Effect.Effect<ParsedDocument, ParseError>
  }
>() {}
