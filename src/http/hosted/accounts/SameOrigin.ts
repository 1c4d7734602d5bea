/**
 * What keeps another site from using a browser's session: a request that changes state comes from
 * `{app_url}`, or from no site at all and then says so with `x-spoke-csrf: 1`. `SessionAuth` asks for it by itself;
 * this is for endpoints before there is a session.
 */
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import { Forbidden } from "../../../domain/Errors.ts"
import { failure } from "../../Envelope.ts"

export class SameOrigin extends HttpApiMiddleware.Tag<SameOrigin>()("http/hosted/accounts/SameOrigin", {
  failure: failure(Forbidden)
}) {}
