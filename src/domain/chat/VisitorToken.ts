/** Tokens by which a server states who the visitor of a page is, and what that visitor may read. */
import * as Schema from "effect/Schema"
import { openScope, SourceScope } from "../knowledge/SourceScope.ts"
import { described } from "../Text.ts"
import { ExternalEndUserId } from "./ChatTurn.ts"

const hour = 3_600

/** Body of `POST /v1/visitor-tokens`. */
export const VisitorTokenRequest = Schema.Struct({
  /** The visitor. With it, the page cannot give another name. */
  externalEndUserId: Schema.optionalWith(ExternalEndUserId, { exact: true }),
  sourceScope: Schema.optionalWith(SourceScope, { exact: true, default: () => openScope }).annotations({
    description:
      "Sources that the visitor may read, within those of the key; sources without labels by default."
  }),
  expiresIn: Schema.optionalWith(
    described(
      Schema.Int.pipe(Schema.between(60, 24 * hour)),
      "Validity of the token in seconds; 12 hours by default."
    ),
    { exact: true, default: () => 12 * hour }
  )
})
export type VisitorTokenRequest = typeof VisitorTokenRequest.Type

export const VisitorToken = Schema.Struct({
  visitorToken: Schema.String,
  expiresAt: Schema.DateTimeUtc,
  /** The requested scope, reduced to what the key may read. */
  sourceScope: SourceScope
})
