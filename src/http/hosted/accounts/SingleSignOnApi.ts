/** Single sign-on of a tenant: configuration by its owners, and sign-in of its people. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Schema from "effect/Schema"
import {
  BeginSignOn,
  Connection,
  PutConnection,
  SignOnAuthorizationResponse
} from "../../../domain/accounts/SingleSignOn.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { managed, OpenReason, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { SameOrigin } from "./SameOrigin.ts"

/** `redirectUri` must be registered at the provider. */
export const ConnectionAnswer = Schema.Struct({
  connection: Schema.NullOr(Connection),
  redirectUri: Schema.String
})

/** `connection` is null when there is none. */
const get = HttpApiEndpoint.get("get", "/single-sign-on")
  .addSuccess(success(ConnectionAnswer))
  .annotate(RequiredRole, "owner")

/**
 * Replaces the connection. 409 when passwords would be switched off before an owner has signed in through the provider,
 * or without a confirmed domain. A domain takes effect once the operator has confirmed it.
 */
const put = HttpApiEndpoint.put("put", "/single-sign-on")
  .setPayload(PutConnection)
  .addSuccess(success(ConnectionAnswer))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

/** Removes the connection, and ends the sessions that it opened. 409 when no owner could sign in without it. */
const remove = HttpApiEndpoint.del("remove", "/single-sign-on")
  .addSuccess(success(Schema.Struct({ deleted: Schema.Literal(true) })))
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

const settings = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(get).add(put).add(remove)

export class SingleSignOnApi extends settings("singleSignOn").prefix("/api").middleware(SessionAuth) {}

export class ManagedSingleSignOnApi extends managed(settings("managedSingleSignOn"), "team") {}

const ScimToken = Schema.Struct({
  /** The first characters of the secret. */
  prefix: Schema.String,
  createdAt: Schema.DateTimeUtc,
  usedAt: Schema.NullOr(Schema.DateTimeUtc)
})
/** `url` is the provider's provisioning address. */
export const ScimAnswer = Schema.Struct({ token: Schema.NullOr(ScimToken), url: Schema.String })
/** The only response with the secret. */
export const MadeScimToken = Schema.Struct({
  token: Schema.NullOr(ScimToken),
  url: Schema.String,
  secret: Schema.Redacted(Schema.String)
})

const getToken = HttpApiEndpoint.get("get", "/api/single-sign-on/scim")
  .addSuccess(success(ScimAnswer))
  .annotate(RequiredRole, "owner")

/** Replaces the token; the previous one is revoked at once. 409 without a connection. */
const makeToken = HttpApiEndpoint.post("make", "/api/single-sign-on/scim")
  .addSuccess(success(MadeScimToken), { status: 201 })
  .addError(failure(Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

const removeToken = HttpApiEndpoint.del("remove", "/api/single-sign-on/scim")
  .addSuccess(success(Schema.Struct({ deleted: Schema.Literal(true) })))
  .addError(failure(NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

export class ScimTokensApi extends HttpApiGroup.make("scimTokens")
  .add(getToken)
  .add(makeToken)
  .add(removeToken)
  .middleware(SessionAuth) {}

/** The address that the page sends the browser to. */
export const BegunSignOn = Schema.Struct({ url: Schema.String })

/** Sets a cookie that the end of the sign-in needs. 404 when the address's domain has no single sign-on. */
const begin = HttpApiEndpoint.post("begin", "/api/auth/sso")
  .setPayload(BeginSignOn)
  .addSuccess(success(BegunSignOn))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .middleware(SameOrigin)
  .annotate(OpenReason, "It is how a session begins.")

export const signOnCallback = "/api/auth/sso/callback"

/**
 * The address to which the provider returns the browser. Redirects to the dashboard, with the problem in `?sso=` if
 * there is one.
 */
const callback = HttpApiEndpoint.get("callback", signOnCallback)
  .setUrlParams(SignOnAuthorizationResponse)
  .addSuccess(HttpApiSchema.Empty(302))
  .addError(failure(ValidationError))
  .annotate(OpenReason, "A session begins here. The browser's own cookie says which sign-in it ends.")

export class SignOnApi extends HttpApiGroup.make("signOn").add(begin).add(callback) {}
