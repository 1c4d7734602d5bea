/** Parses in the calling thread, for tests and trusted documents. A document that hangs is not stopped. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DocumentParser, type ParseLimits } from "../DocumentParser.ts"
import { parseDocument } from "./Document.ts"
import { defaultLimits } from "./Limits.ts"

export const layerInline = (limits: Partial<ParseLimits> = {}) =>
  Layer.succeed(DocumentParser, {
    parse: (request) =>
      parseDocument(request, { ...defaultLimits, ...limits }).pipe(Effect.withSpan("DocumentParser.parse"))
  })
