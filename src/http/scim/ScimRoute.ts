/**
 * `/scim/v2`: provisioning by SCIM 2.0 (RFC 7643, RFC 7644) with the token of a tenant. Responses have no envelope:
 * their format, including errors, is SCIM's.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  patchGroup,
  patchPerson,
  readFilter,
  readGroup,
  readPerson,
  ScimError
} from "../../domain/accounts/Scim.ts"
import * as Json from "../../domain/Json.ts"
import { sanitize } from "../../domain/Text.ts"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { Scim } from "../../usecases/accounts/Scim.ts"
import { ScimAccess } from "../../usecases/accounts/ScimAccess.ts"
import { TenantGate } from "../../usecases/operations/moves/TenantGate.ts"
import { bearerToken } from "../BearerToken.ts"
import { RequestId } from "../server/RequestId.ts"
import { json, problem, scimPath } from "./Problem.ts"
import * as Resources from "./Resources.ts"

const errorResponse = ({ detail, scimType, status }: ScimError) =>
  problem(status, detail, scimType, {
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(status === 429 ? { "retry-after": "1" } : {})
  })

const clampedInteger = (text: string | null, fallback: number, min: number, max: number) => {
  const number = text === null ? fallback : Number(text)
  return Number.isSafeInteger(number)
    ? Effect.succeed(Math.min(max, Math.max(min, number)))
    : Effect.fail(
        new ScimError({
          status: 400,
          scimType: "invalidValue",
          detail: "Expected startIndex and count as whole numbers."
        })
      )
}

const attributeNames = (list: string) => list.split(",").map((name) => name.trim().toLowerCase())

/** The page of a list that is requested. Numbers out of range are clamped, as RFC 7644 requires. */
const requestedPage = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const query = new URLSearchParams(url.slice(url.includes("?") ? url.indexOf("?") : url.length))
  const startIndex = yield* clampedInteger(query.get("startIndex"), 1, 1, 1_000_000)
  const count = yield* clampedInteger(query.get("count"), Resources.maxPage, 0, Resources.maxPage)
  const attributes = query.get("attributes")
  const includesMembers =
    attributes === null || attributeNames(attributes).some((name) => name.startsWith("members"))
  return {
    page: { startIndex, count },
    filter: query.get("filter") ?? undefined,
    withMembers: includesMembers && !attributeNames(query.get("excludedAttributes") ?? "").includes("members")
  }
})

const body = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  // The boundary answers for a body that is too large or incomplete.
  const parsed = Json.parse(yield* Effect.orDie(request.text))
  return Either.isRight(parsed)
    ? parsed.right
    : yield* new ScimError({
        status: 400,
        scimType: "invalidSyntax",
        detail: `The body cannot be read: ${parsed.left.message}.`
      })
})

const pathId = Effect.map(HttpRouter.params, ({ id = "" }) => sanitize(id))

/** Adds the routes. `appUrl` is `{app_url}`. */
export const layer = (appUrl: string) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const access = yield* ScimAccess
      const scim = yield* Scim
      const audit = yield* AuditTrail
      const gate = yield* TenantGate
      const base = new URL(scimPath, appUrl).href

      const personResponse = (found: Parameters<typeof Resources.personResource>[1], status = 200) =>
        json(
          Resources.personResource(base, found),
          status,
          status === 201 ? { location: `${base}/Users/${found.id}` } : {}
        )

      /** Runs a change and writes its audit entry. */
      const change = <A, E>(
        scope: TenantScope,
        action: string,
        changed: Effect.Effect<A, E>,
        target: string | ((created: A) => string)
      ) =>
        Effect.flatMap(RequestId, (requestId) =>
          audit.change(
            { tenantId: scope.tenantId, actor: { type: "service", id: "scim" }, requestId },
            action,
            changed,
            target
          )
        )

      const withTenant = <E, R>(
        handle: (scope: TenantScope) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
      ) =>
        Effect.gen(function* () {
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          const scope = yield* access.authenticate(Redacted.make(bearerToken(headers["authorization"])))
          yield* gate.enter(scope.tenantId)
          return yield* handle(scope)
        }).pipe(
          Effect.catchIf(
            (error) => error instanceof ScimError,
            (error) => Effect.succeed(errorResponse(error))
          )
        )

      const descriptionRoute = (description: unknown) => withTenant(() => Effect.succeed(json(description)))
      yield* router.get(
        `${scimPath}/ServiceProviderConfig`,
        descriptionRoute(Resources.serviceProviderConfig(base))
      )
      /** Routes for a list of descriptions, and for each by its id. */
      const addDescriptions = Effect.fn(function* (
        path: `/${string}`,
        all: ReadonlyArray<Resources.Description>
      ) {
        yield* router.get(path, descriptionRoute(Resources.list(all, all.length, 1)))
        yield* router.get(
          `${path}/:id`,
          withTenant(() =>
            Effect.gen(function* () {
              const id = yield* pathId
              const found = all.find((each) => each.id === id)
              return found === undefined
                ? yield* new ScimError({
                    status: 404,
                    scimType: null,
                    detail: "There is no such description."
                  })
                : json(found)
            })
          )
        )
      })
      yield* addDescriptions(`${scimPath}/ResourceTypes`, Resources.resourceTypes(base))
      yield* addDescriptions(`${scimPath}/Schemas`, Resources.schemaList(base))

      yield* router.get(
        `${scimPath}/Users`,
        withTenant((scope) =>
          Effect.gen(function* () {
            const { filter, page } = yield* requestedPage
            const parsedFilter = yield* readFilter(filter, ["userName", "externalId", "id", "active"])
            const { rows, total } = yield* scim.people(scope, parsedFilter, page)
            const resources = rows.map((row) => Resources.personResource(base, row))
            return json(Resources.list(resources, total, page.startIndex))
          })
        )
      )
      yield* router.post(
        `${scimPath}/Users`,
        withTenant((scope) =>
          Effect.gen(function* () {
            const fields = yield* readPerson(yield* body)
            const created = yield* change(
              scope,
              "user.create",
              scim.createPerson(scope, fields),
              ({ id }) => id
            )
            return personResponse(created, 201)
          })
        )
      )
      yield* router.get(
        `${scimPath}/Users/:id`,
        withTenant((scope) =>
          Effect.gen(function* () {
            return personResponse(yield* scim.person(scope, yield* pathId))
          })
        )
      )
      const changePerson = (read: typeof patchPerson) =>
        withTenant((scope) =>
          Effect.gen(function* () {
            const changes = yield* read(yield* body)
            const changed = scim.changePerson(scope, yield* pathId, changes)
            return personResponse(yield* change(scope, "user.update", changed, ({ id }) => id))
          })
        )
      yield* router.put(`${scimPath}/Users/:id`, changePerson(readPerson))
      yield* router.patch(`${scimPath}/Users/:id`, changePerson(patchPerson))
      yield* router.del(
        `${scimPath}/Users/:id`,
        withTenant((scope) =>
          Effect.gen(function* () {
            const id = yield* pathId
            yield* change(scope, "user.delete", scim.removePerson(scope, id), id)
            return HttpServerResponse.empty({ status: 204 })
          })
        )
      )

      yield* router.get(
        `${scimPath}/Groups`,
        withTenant((scope) =>
          Effect.gen(function* () {
            const { filter, page, withMembers } = yield* requestedPage
            const parsedFilter = yield* readFilter(filter, ["displayName", "externalId", "id", "members"])
            const { rows, total } = yield* scim.groups(scope, parsedFilter, page, withMembers)
            const resources = rows.map((row) => Resources.groupResource(base, row, withMembers))
            return json(Resources.list(resources, total, page.startIndex))
          })
        )
      )
      yield* router.post(
        `${scimPath}/Groups`,
        withTenant((scope) =>
          Effect.gen(function* () {
            const fields = yield* readGroup(yield* body)
            const created = yield* change(
              scope,
              "group.create",
              scim.createGroup(scope, fields),
              ({ id }) => id
            )
            return json(Resources.groupResource(base, created, true), 201, {
              location: `${base}/Groups/${created.id}`
            })
          })
        )
      )
      const groupResponse = (scope: TenantScope, id: string) =>
        Effect.gen(function* () {
          const { withMembers } = yield* requestedPage
          return json(Resources.groupResource(base, yield* scim.group(scope, id, withMembers), withMembers))
        })
      yield* router.get(
        `${scimPath}/Groups/:id`,
        withTenant((scope) => Effect.flatMap(pathId, (id) => groupResponse(scope, id)))
      )
      const changeGroup = (
        read: typeof patchGroup,
        respond: (scope: TenantScope, id: string) => ReturnType<typeof groupResponse>
      ) =>
        withTenant((scope) =>
          Effect.gen(function* () {
            const id = yield* pathId
            const changes = yield* read(yield* body)
            yield* change(scope, "group.update", scim.changeGroup(scope, id, changes), id)
            return yield* respond(scope, id)
          })
        )
      yield* router.put(`${scimPath}/Groups/:id`, changeGroup(readGroup, groupResponse))
      // The response has no members: the group may be large, and clients do not need them here.
      yield* router.patch(
        `${scimPath}/Groups/:id`,
        changeGroup(patchGroup, () => Effect.succeed(HttpServerResponse.empty({ status: 204 })))
      )
      yield* router.del(
        `${scimPath}/Groups/:id`,
        withTenant((scope) =>
          Effect.gen(function* () {
            const id = yield* pathId
            yield* change(scope, "group.delete", scim.removeGroup(scope, id), id)
            return HttpServerResponse.empty({ status: 204 })
          })
        )
      )
    })
  )
