/** Messages to and from the parser's worker thread. */
import * as Schema from "effect/Schema"
import { ParsedDocument, ParseErrorCode, ParseLimits, ParseRequest } from "../DocumentParser.ts"

export const Job = Schema.Struct({ requests: Schema.Array(ParseRequest), limits: ParseLimits })
export type Job = typeof Job.Type

export const Answer = Schema.Union(
  Schema.TaggedStruct("Parsed", { document: ParsedDocument }),
  Schema.TaggedStruct("Failed", { code: ParseErrorCode, message: Schema.String })
)
export type Answer = typeof Answer.Type

/** One answer per request, in order. */
export const Answers = Schema.Array(Answer)
