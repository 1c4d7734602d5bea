/**
 * Protects browser sessions against other sites: a request that changes state must come from `{app_url}`, or have no
 * origin and the header `x-spoke-csrf: 1`. `SessionAuth` checks this itself; this middleware is for endpoints without a
 * session.
 */
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import { Forbidden } from "../../../domain/Errors.ts"
import { failure } from "../../Envelope.ts"

export class SameOrigin extends HttpApiMiddleware.Tag<SameOrigin>()("http/hosted/accounts/SameOrigin", {
  failure: failure(Forbidden)
}) {}
