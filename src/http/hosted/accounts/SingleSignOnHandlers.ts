import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SessionUser } from "../../../domain/accounts/Access.ts"
import { deviceOf } from "../../../domain/accounts/Session.ts"
import { sessionLifetime } from "../../../usecases/accounts/Accounts.ts"
import { flowLifetime, SignOn } from "../../../usecases/accounts/SignOn.ts"
import { ScimAccess } from "../../../usecases/accounts/ScimAccess.ts"
import { SingleSignOn } from "../../../usecases/accounts/SingleSignOn.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { networkOfRequest, TrustedProxies } from "../../server/ClientAddress.ts"
import { RequestId } from "../../server/RequestId.ts"
import { audited } from "./Actor.ts"
import { SessionCookie } from "./SessionCookie.ts"
import { SignOnCookie } from "./SignOnCookie.ts"

const tenantOf = (_: unknown, { tenantId }: SessionUser) => tenantId

/** The tenant's single sign-on connection. */
const group = (handlers: GroupHandlers<"singleSignOn">) =>
  Effect.gen(function* () {
    const settings = yield* SingleSignOn
    const { redirectUri } = yield* SignOnCookie
    return handlers
      .handle("get", () =>
        Effect.gen(function* () {
          return { connection: yield* settings.find(yield* CurrentUser), redirectUri }
        })
      )
      .handle("put", ({ payload }) =>
        audited("single_sign_on.update", (user) => settings.put(user, payload), tenantOf).pipe(
          Effect.map((connection) => ({ connection, redirectUri }))
        )
      )
      .handle("remove", () =>
        Effect.as(audited("single_sign_on.delete", settings.remove, tenantOf), { deleted: true } as const)
      )
  })

export const SingleSignOnHandlers = HttpApiBuilder.group(Api, "singleSignOn", group)
export const ManagedSingleSignOnHandlers = HttpApiBuilder.group(Api, "managedSingleSignOn", group)

/** The token for provisioning. */
export const ScimTokensHandlers = HttpApiBuilder.group(Api, "scimTokens", (handlers) =>
  Effect.gen(function* () {
    const access = yield* ScimAccess
    const { scimUrl: url } = yield* SignOnCookie
    return handlers
      .handle("get", () =>
        Effect.gen(function* () {
          return { token: yield* access.find(yield* CurrentUser), url }
        })
      )
      .handle("make", () =>
        audited("scim_token.create", access.create, tenantOf).pipe(
          Effect.map((created) => ({ ...created, url }))
        )
      )
      .handle("remove", () =>
        Effect.as(audited("scim_token.revoke", access.remove, tenantOf), { deleted: true } as const)
      )
  })
)

/** Redirects to the dashboard, which shows the problem if there is one. There is no other redirect target. */
const toDashboard = (query = "") => HttpServerResponse.redirect(`/app${query}`, { status: 302 })

/** Sign-in through the organisation's provider. */
export const SignOnHandlers = HttpApiBuilder.group(Api, "signOn", (handlers) =>
  Effect.gen(function* () {
    const signOn = yield* SignOn
    const session = yield* SessionCookie
    const cookie = yield* SignOnCookie
    const proxies = yield* TrustedProxies
    return handlers
      .handle("begin", ({ payload, request }) =>
        Effect.gen(function* () {
          const network = networkOfRequest(proxies, request)
          const { flow, url } = yield* signOn.begin(payload.email, cookie.redirectUri, network)
          yield* cookie.set(flow, flowLifetime)
          return { url }
        })
      )
      .handle("callback", ({ request, urlParams }) =>
        Effect.gen(function* () {
          const flow = Option.getOrNull(yield* cookie.take)
          const origin = {
            address: networkOfRequest(proxies, request),
            device: deviceOf(request.headers["user-agent"])
          }
          const requestId = yield* RequestId
          const { token } = yield* signOn.finish(flow, urlParams, cookie.redirectUri, { origin, requestId })
          yield* session.set(token, sessionLifetime)
          return toDashboard()
        }).pipe(
          Effect.catchTag("SignOnRefused", ({ problem }) => Effect.succeed(toDashboard(`?sso=${problem}`)))
        )
      )
  })
)
