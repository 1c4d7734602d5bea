/** Passkeys: the caller's own, and sign-in. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  CreatePasskey,
  CreationOptions,
  Passkey,
  PasskeyId,
  RequestOptions,
  SignInWithPasskey
} from "../../../../domain/accounts/Passkey.ts"
import {
  Conflict,
  NotFound,
  RateLimited,
  ServiceUnavailable,
  Unauthorized,
  ValidationError
} from "../../../../domain/Errors.ts"
import { OpenReason, RequiredRole, SessionAuth } from "../../../Auth.ts"
import { deletion, failure, success } from "../../../Envelope.ts"
import { SameOrigin } from "../SameOrigin.ts"
import { SignedIn } from "../SessionsApi.ts"

/** `available` is false where browsers support no passkeys: for IP addresses, or without https. */
export const PasskeyList = Schema.Struct({
  passkeys: Schema.Array(Passkey),
  available: Schema.Boolean
})
export const CreationChallenge = Schema.Struct({ options: CreationOptions })
export const OnePasskey = Schema.Struct({ passkey: Passkey })
export const RequestChallenge = Schema.Struct({ options: RequestOptions })

const list = HttpApiEndpoint.get("list", "/api/auth/passkeys")
  .addSuccess(success(PasskeyList))
  .annotate(RequiredRole, "viewer")

/** Sets a cookie that the answer to the challenge needs. */
const beginAdding = HttpApiEndpoint.post("beginAdding", "/api/auth/passkeys/challenge")
  .addSuccess(success(CreationChallenge))
  .addError(failure(Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

/** Each challenge accepts one answer, within five minutes. */
const add = HttpApiEndpoint.post("add", "/api/auth/passkeys")
  .setPayload(CreatePasskey)
  .addSuccess(success(OnePasskey), { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

const remove = deletion("remove", "/api/auth/passkeys/:id", PasskeyId).annotate(RequiredRole, "viewer")

export class PasskeysApi extends HttpApiGroup.make("passkeys")
  .add(list)
  .add(beginAdding)
  .add(add)
  .add(remove)
  .middleware(SessionAuth) {}

/** The same response for everybody. Sets a cookie that the answer to the challenge needs. */
const challenge = HttpApiEndpoint.post("challenge", "/api/auth/passkey/challenge")
  .addSuccess(success(RequestChallenge))
  .middleware(SameOrigin)
  .annotate(OpenReason, "It is how a session begins.")

/** Sets cookie `spoke_session`. After ten failures of an address within 15 minutes every attempt is 429. */
const signIn = HttpApiEndpoint.post("signIn", "/api/auth/passkey")
  .setPayload(SignInWithPasskey)
  .addSuccess(success(SignedIn))
  .addError(failure(Unauthorized, ValidationError, RateLimited, ServiceUnavailable))
  .middleware(SameOrigin)
  .annotate(OpenReason, "It is how a session begins.")

export class PasskeySignInApi extends HttpApiGroup.make("passkeySignIn").add(challenge).add(signIn) {}
