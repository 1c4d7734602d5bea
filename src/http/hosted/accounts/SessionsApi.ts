/** Signing in and out of the dashboard. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Login, User } from "../../../domain/accounts/Account.ts"
import { RateLimited, ServiceUnavailable, Unauthorized, ValidationError } from "../../../domain/Errors.ts"
import { OpenReason, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { SameOrigin } from "./SameOrigin.ts"

export const SignedIn = Schema.Struct({ user: Schema.Struct(User.fields) })
const SignedOut = success(Schema.Struct({ signedOut: Schema.Literal(true) }))

/** Sets cookie `spoke_session`. After ten failures of an account and address within 15 minutes every attempt is 429. */
const login = HttpApiEndpoint.post("login", "/api/auth/login")
  .setPayload(Login)
  .addSuccess(success(SignedIn))
  .addError(failure(Unauthorized, ValidationError, RateLimited, ServiceUnavailable))
  .middleware(SameOrigin)
  .annotate(OpenReason, "It is how a session begins.")

const logout = HttpApiEndpoint.post("logout", "/api/auth/logout")
  .addSuccess(SignedOut)
  .middleware(SessionAuth)
  .annotate(RequiredRole, "viewer")

const session = HttpApiEndpoint.get("session", "/api/auth/session")
  .addSuccess(success(SignedIn))
  .middleware(SessionAuth)
  .annotate(RequiredRole, "viewer")

export class SessionsApi extends HttpApiGroup.make("sessions").add(login).add(logout).add(session) {}
