/** The management interface offers programs every operation of the dashboard. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { expect, it } from "vitest"
import { Api } from "../../../src/http/Api.ts"
import { manageDescription } from "../../../src/http/manage/ManageDescription.ts"
import { CallerAuth, ManageAuth, SessionAuth } from "../../../src/http/Auth.ts"
import { keyOf, table } from "../../../src/http/Routes.ts"
import { permits, Scope } from "../../../src/domain/accounts/AccessToken.ts"

const prefix = "/api/manage/v1/"
const routes = table(Api)

/** Providers deliver to `/api/webhooks`, so that the dashboard has another name for those of the tenant. */
const twinOf = (key: string) =>
  key.replace(" /api/", ` ${prefix}`).replace(/\/webhook-endpoints\b/u, "/webhooks")
const originalOf = (key: string) =>
  key.replace(prefix, "/api/").replace(" /api/webhooks", " /api/webhook-endpoints")

const under = (key: string): ReadonlySet<string> => {
  const found = new Set<string>()
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, middleware }) => {
      if ([...middleware].some((each) => each.key === key)) found.add(keyOf(endpoint))
    }
  })
  return found
}

/** Routes that change something for a session and have no twin, and why. */
const exceptions: Readonly<Record<string, string>> = {
  "POST /api/auth/logout": "A token has no session to end.",
  "DELETE /api/auth/sessions": "A token has no sessions of its own; those of its maker are under /users.",
  "DELETE /api/auth/sessions/:id": "A token has no sessions of its own; those of its maker are under /users.",
  "POST /api/auth/passkeys": "A browser adds a passkey, for whom it has signed in.",
  "POST /api/auth/passkeys/challenge": "A browser adds a passkey, for whom it has signed in.",
  "DELETE /api/auth/passkeys/:id": "Whoever holds a token may not lock its maker out.",
  "POST /api/single-sign-on/scim": "A token makes no token: it would outlive its own revocation.",
  "DELETE /api/single-sign-on/scim": "Whoever made it with a session ends it with one.",
  "POST /api/tokens": "A token makes no token: it would outlive its own revocation.",
  "DELETE /api/tokens/:id": "Whoever holds a token may not lock its maker out of the others.",
  "POST /api/conversations/:id/realtime": "It opens a socket for the page that shows a conversation."
}

it("every changing route of the dashboard has a twin, or a reason why not", () => {
  const ofSessions = [...under(SessionAuth.key)].filter((key) => !key.startsWith("GET "))
  const manageDescription = under(ManageAuth.key)
  expect(ofSessions.length).toBeGreaterThan(30)
  const missing = ofSessions.filter((key) => !manageDescription.has(twinOf(key)))
  expect(missing.toSorted()).toEqual(Object.keys(exceptions).toSorted())
})

it("only chat and replays accept a session or a key, and programs use a key for them", () => {
  const others = [...under(CallerAuth.key)].filter((key) => !/ \/api\/(?:sdk|v1)\//u.test(key))
  expect(others).toEqual(["POST /api/agents/:id/replays"])
})

it("a twin requires the same role as the route of the dashboard, and states its scope", () => {
  const twins = routes.filter(({ path }) => path.startsWith(prefix))
  expect(twins.length).toBeGreaterThan(40)
  for (const twin of twins) {
    expect([keyOf(twin), twin.scope?.verb]).toEqual([keyOf(twin), twin.method === "GET" ? "read" : "write"])
    const original = routes.find((route) => keyOf(route) === originalOf(keyOf(twin)))
    if (original !== undefined) expect([keyOf(twin), twin.role]).toEqual([keyOf(twin), original.role])
  }
})

it("no route outside the management interface accepts an access token, and none inside accepts anything else", () => {
  const manageDescription = under(ManageAuth.key)
  const inside = routes.filter(({ path }) => path.startsWith("/api/manage/")).map(keyOf)
  expect(inside.toSorted()).toEqual([...manageDescription].toSorted())
  for (const key of [SessionAuth.key, CallerAuth.key]) {
    expect([...under(key)].filter((route) => manageDescription.has(route))).toEqual([])
  }
})

it("the description has every route with its scope, and no dangling references", () => {
  const described = manageDescription()
  const scopes = Object.entries(described.paths).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([method, operation]) => [
      `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/gu, ":$1")}`,
      Object(operation)["x-scope"]
    ])
  )
  const declared = routes.flatMap((route) =>
    route.scope === undefined ? [] : [[keyOf(route), `${route.scope.resource}:${route.scope.verb}`]]
  )
  expect(scopes.toSorted()).toEqual(declared.toSorted())
  const names = Array.from(
    JSON.stringify(described).matchAll(/#\/components\/schemas\/([^"]+)/gu),
    ([, name]) => name
  )
  expect(names.length).toBeGreaterThan(5)
  expect(names.filter((name) => !Object.hasOwn(described.components.schemas, name ?? ""))).toEqual([])
})

it("every resource of a scope has routes that require it, and agents include their widgets", () => {
  // A refusal lists what a scope may name.
  const refusal = Either.match(Schema.decodeUnknownEither(Scope)("nothing"), {
    onLeft: ({ message }) => message,
    onRight: () => ""
  })
  const resources = (/a resource of ([a-z, ]+), \*/u.exec(refusal)?.[1] ?? "").split(", ")
  expect(resources).toContain("widget")
  const scopes = routes.flatMap(({ scope }) => (scope === undefined ? [] : [scope]))
  expect(resources.filter((resource) => !scopes.some((scope) => scope.resource === resource))).toEqual([])
  const ofWidgets = scopes.filter(({ resource }) => resource === "widget")
  expect(ofWidgets.map(({ verb }) => verb).toSorted()).toEqual(["read", "write"])
  const [one, other] = [
    { resource: "widget", verb: "write" } as const,
    { resource: "agents", verb: "read" } as const
  ]
  expect(permits(["widget:write"], one)).toBe(true)
  expect(permits(["agents:write"], one)).toBe(true)
  expect(permits(["agents:read", "sources:*"], one)).toBe(false)
  expect(permits(["widget:*"], other)).toBe(false)
})
