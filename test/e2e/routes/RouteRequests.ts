/** Requests made from the declarations of the routes: with a caller's own ids, and with ids of another owner. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { HostedTurnRequest } from "../../../src/domain/chat/Widget.ts"
import { Api } from "../../../src/http/Api.ts"
import { keyOf, type Route, table } from "../../../src/http/Routes.ts"
import type { Kind, World } from "./RouteWorld.ts"

export const routes = table(Api)

export interface Field {
  readonly place: "path" | "query" | "body"
  readonly name: string
  readonly kind: Kind
  readonly required: boolean
}

const kinds: Record<Kind, true> = {
  AgentId: true,
  KeyId: true,
  TokenId: true,
  ToolId: true,
  TestCaseId: true,
  ExperimentId: true,
  CorrectionId: true,
  WebhookId: true,
  BudgetId: true,
  ChannelId: true,
  SourceId: true,
  DocumentId: true,
  ChunkId: true,
  IngestionJobId: true,
  ConversationId: true,
  MessageId: true,
  RunId: true,
  EndUserId: true,
  UserId: true,
  LabelId: true,
  SavedViewId: true,
  CannedReplyId: true,
  EntryId: true,
  SessionId: true,
  SignInId: true,
  PasskeyId: true,
  attachment: true,
  artifact: true,
  conversation: true
}
export const isKind = (name: string): name is Kind => Object.hasOwn(kinds, name)

/** Path parameters of a stored file, and of the conversation that has it or the message. */
export const files: Readonly<Record<string, Kind>> = {
  "GET /api/sdk/attachments/:id :id": "attachment",
  "GET /api/conversations/:id/attachments/:artifact :artifact": "artifact",
  "GET /api/conversations/:id/attachments/:artifact :id": "conversation",
  "POST /api/conversations/:id/read :id": "conversation",
  "POST /api/manage/v1/conversations/:id/read :id": "conversation"
}

/** Names that callers choose themselves. They are not ids of resources. */
const chosenByCallers = new Set(["ExternalEndUserId", "ChatId"])

export const brandOf = (ast: AST.AST): string | undefined => {
  const [brand] = Option.getOrElse(AST.getBrandAnnotation(ast), (): ReadonlyArray<string | symbol> => [])
  if (brand !== undefined) return String(brand)
  if (AST.isRefinement(ast)) return brandOf(ast.from)
  if (AST.isTransformation(ast)) return brandOf(ast.to)
  if (AST.isUnion(ast)) return ast.types.map(brandOf).find((found) => found !== undefined)
  if (AST.isTupleType(ast)) return ast.rest.map(({ type }) => brandOf(type)).find(Boolean)
  return undefined
}

const propertiesOf = (ast: AST.AST): ReadonlyArray<AST.PropertySignature> => {
  if (AST.isTypeLiteral(ast)) return ast.propertySignatures
  if (AST.isRefinement(ast)) return propertiesOf(ast.from)
  if (AST.isTransformation(ast)) return [...propertiesOf(ast.to), ...propertiesOf(ast.from)]
  if (AST.isUnion(ast)) return ast.types.flatMap(propertiesOf)
  return []
}

const fieldsOf = (route: string, place: Field["place"], schema: Schema.Schema.All | undefined) => {
  const fields = new Map<string, Field>()
  for (const { isOptional, name, type } of schema === undefined ? [] : propertiesOf(schema.ast)) {
    const brand = files[`${route} :${String(name)}`] ?? brandOf(type)
    const looksLikeId = place === "path" || /(^id|Ids?)$/.test(String(name))
    if (brand === undefined ? !looksLikeId : chosenByCallers.has(brand) || !/Ids?$|^[a-z]+$/.test(brand))
      continue
    if (route.includes("/api/operator/")) continue
    if (brand === undefined) {
      if (foreignIds.has(String(name)) || numberParameter.test(`:${String(name)}`)) continue
      throw new Error(`${route}: the kind of the id ${String(name)} in the ${place} is not known.`)
    }
    if (!isKind(brand))
      throw new Error(`${route}: RouteWorld.ts has no ${brand} for ${String(name)} in the ${place}.`)
    fields.set(String(name), { place, name: String(name), kind: brand, required: !isOptional })
  }
  return [...fields.values()]
}

/** Path parameters that are numbers within the resource of another id, such as versions. */
const numberParameter = /:version\b/u

/** Ids that are no resources of their own: ids at other providers, and findings of the agent in the path. */
const foreignIds = new Set(["finding", "externalId", "messageId", "channel", "account", "clientId"])

/** Bodies that are decoded by their handlers. */
export const undeclaredBodies: Readonly<Record<string, Schema.Schema.All>> = {
  "POST /api/v1/chat/stream": HostedTurnRequest
}

const declaredFields = (): ReadonlyMap<string, ReadonlyArray<Field>> => {
  const fields = new Map<string, ReadonlyArray<Field>>()
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      const route = keyOf(endpoint)
      const payload = Option.getOrElse(endpoint.payloadSchema, () => undeclaredBodies[route])
      const found = [
        ...fieldsOf(route, "path", Option.getOrUndefined(endpoint.pathSchema)),
        ...fieldsOf(route, "query", Option.getOrUndefined(endpoint.urlParamsSchema)),
        ...fieldsOf(route, "body", payload)
      ]
      const inPath = found.filter(({ place }) => place === "path").map(({ name }) => `:${name}`)
      const pattern = endpoint.path.replace(numberParameter, "1").match(/:\w+/g) ?? []
      const isOperators = endpoint.path.startsWith("/api/operator/")
      if (
        !isOperators &&
        pattern.some((name) => !inPath.includes(name) && name !== ":chatId" && !foreignIds.has(name.slice(1)))
      ) {
        throw new Error(`${route} does not declare its path.`)
      }
      if (found.length > 0 && payload !== undefined && bodies[twinOf(route)] === undefined) {
        throw new Error(`${route} takes ids, but "bodies" has no body for it.`)
      }
      fields.set(route, found)
    }
  })
  return fields
}

/** The route of the dashboard that takes the same as this route of the management interface. */
export const twinOf = (route: string) =>
  route.replace(" /api/manage/v1/webhooks", " /api/webhook-endpoints").replace(" /api/manage/v1/", " /api/")

const file = () => ({ file: new File(["Some text."], "some.txt", { type: "text/plain" }) })

/** The fields that each of these routes needs besides ids. */
export const bodies: Readonly<Record<string, () => Readonly<Record<string, unknown>>>> = {
  "POST /v1/chat": () => ({ message: "Hello" }),
  "POST /v1/chat/stream": () => ({ message: "Hello" }),
  "POST /api/v1/chat/stream": () => ({ message: "Hello" }),
  "PATCH /v1/sources/:id": () => ({ name: "Taken" }),
  "POST /v1/sources/:id/sync": () => ({}),
  "POST /api/sdk/init": () => ({}),
  "POST /api/sdk/identify": () => ({ externalEndUserId: "taken" }),
  "POST /api/sdk/feedback": () => ({ rating: 1 }),
  "POST /api/sdk/handoff": () => ({}),
  "POST /api/sdk/typing": () => ({}),
  "POST /api/sdk/voice/start": () => ({}),
  "PATCH /api/agents/:id": () => ({ name: "Taken" }),
  "PATCH /api/agents/:id/widget": () => ({ avatar: "T" }),
  "PUT /api/agents/:id/split": () => ({ version: 1, share: 0.5 }),
  "POST /api/agents/:id/replays": () => ({}),
  "POST /api/agents/:id/keys": () => ({ name: "Taken", permissions: ["chat"] }),
  "PATCH /api/keys/:id": () => ({ name: "Taken" }),
  "POST /api/agents/:id/channels": () => ({
    channel: "messenger",
    externalId: "99",
    accessToken: "taken-99"
  }),
  "PATCH /api/channels/:id": () => ({ active: false }),
  "POST /api/agents/:id/tools": () => ({
    name: "taken",
    description: "Taken.",
    parameters: { type: "object", properties: {} },
    http: { method: "GET", url: "https://shop.example/" }
  }),
  "POST /api/agents/:id/cases": () => ({ question: "Taken?" }),
  "POST /api/agents/:id/cases/from-run": () => ({}),
  "POST /api/agents/:id/cases/import": () => ({ format: "csv", text: "question\nTaken?" }),
  "POST /api/agents/:id/experiments": () => ({}),
  "POST /api/agents/:id/impact/replay": () => ({}),
  "POST /api/agents/:id/findings/:finding/dismiss": () => ({}),
  "POST /api/agents/:id/findings/:finding/restore": () => ({}),
  "POST /api/agents/:id/passages/search": () => ({ query: "Taken?" }),
  "POST /api/sources/:id/passages/:passage/exclude": () => ({}),
  "POST /api/sources/:id/passages/:passage/restore": () => ({}),
  "POST /api/agents/:id/corrections": () => ({}),
  "PATCH /api/corrections/:id": () => ({ answer: "Taken." }),
  "POST /api/corrections/:id/preview": () => ({}),
  "POST /api/corrections/:id/approve": () => ({}),
  "PUT /api/agents/:id/threshold": () => ({ minPass: null, noRegression: false }),
  "PUT /api/cases/:id": () => ({ question: "Taken?" }),
  "PATCH /api/tools/:id": () => ({ description: "Taken." }),
  "POST /api/tools/:id/connection": () => ({}),
  "POST /api/tools/:id/trial": () => ({}),
  "PATCH /api/webhook-endpoints/:id": () => ({ url: "https://shop.example/taken" }),
  "POST /api/budgets": () => ({ period: "day", limitNanoUsd: 1_000_000_000_000 }),
  "PATCH /api/budgets/:id": () => ({ limitNanoUsd: 2_000_000_000_000 }),
  "POST /api/listeners/:id/next": () => ({}),
  "POST /api/webhook-endpoints/:id/replay": () => ({ from: "2026-01-01T00:00:00Z" }),
  "POST /api/sources": () => ({ type: "URL", name: "Taken", config: { url: "https://shop.example/" } }),
  "POST /api/sources/upload": file,
  "POST /api/sources/bulk-upload": file,
  "PATCH /api/sources/:id": () => ({ name: "Taken" }),
  "POST /api/sources/:id/sync": () => ({}),
  "PATCH /api/users/:id": () => ({ role: "viewer" }),
  "POST /api/conversations/:id/messages": () => ({ content: "Taken." }),
  "POST /api/conversations/:id/notes": () => ({ content: "Taken." }),
  "POST /api/conversations/:id/read": () => ({}),
  "PUT /api/conversations/:id/assignee": () => ({}),
  "PUT /api/conversations/:id/labels": () => ({}),
  "PUT /api/inbox/replies/:id": () => ({ shortcut: "taken", content: "Taken." })
}

/** Optional ids that are valid only together with another one. */
const companions: ReadonlyMap<string, string> = new Map([["retryOf", "sessionId"]])

/** Optional ids that are always sent, because a request without them would need other fields. */
const alwaysSent = new Set(["POST /api/agents/:id/corrections runIds"])

/** Optional ids of agents that exclude another id, so they are sent alone. */
const sentAlone = new Set(["POST /api/budgets agentId"])

const declared = declaredFields()

/** The ids that a route takes. Throws for an id of an unknown kind. */
export const idsOf = (route: Route): ReadonlyArray<Field> => declared.get(keyOf(route)) ?? []

export interface RouteRequest {
  readonly path: string
  readonly body: unknown
}

const bodyOf = (fields: Readonly<Record<string, unknown>>) => {
  if (!Object.values(fields).some((value) => value instanceof File)) return fields
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    form.append(name, value instanceof File ? value : String(value))
  }
  return form
}

/** A request of `route` with the ids that `idOf` returns; undefined leaves an id out. */
const requestOf = (route: Route, idOf: (field: Field) => string | undefined): RouteRequest => {
  let path = route.path.replace(numberParameter, "1").replace(":chatId", "chat-1")
  const query = new URLSearchParams()
  const ids: Record<string, string | ReadonlyArray<string>> = {}
  for (const field of idsOf(route)) {
    const id = idOf(field)
    if (id === undefined) continue
    if (field.place === "path") path = path.replace(`:${field.name}`, encodeURIComponent(id))
    else if (field.place === "query") query.set(field.name, id)
    else ids[field.name] = field.name.endsWith("Ids") ? [id] : id
  }
  const body = bodies[twinOf(keyOf(route))]
  return {
    path: query.size === 0 ? path : `${path}?${query}`,
    body: body === undefined ? undefined : bodyOf({ ...ids, ...body() })
  }
}

/** The kind of credential. A key is for one agent, regardless of `agentId`. With a session or a token, `agentId` is needed. */
export type Credential = "key" | "session" | "token"

/** The request with the caller's own ids. */
export const ownRequest = (route: Route, by: Credential, world: World): RouteRequest =>
  requestOf(route, ({ kind, required }) =>
    required || (by !== "key" && kind === "AgentId" && route.permission !== undefined)
      ? world.ids[kind]
      : undefined
  )

/** Requests of `mine`, each with one id of `victim`, and one with all of them. */
export const foreignRequests = (
  route: Route,
  by: Credential,
  mine: World,
  victim: World
): ReadonlyArray<RouteRequest> => {
  const isRefused = ({ kind, place }: Field) => {
    if (by === "key" && kind === "AgentId" && place !== "path") return false
    // An end user belongs to the tenant, so each of its agents may begin a conversation with them.
    return !(kind === "EndUserId" && place === "body" && mine.tenantId === victim.tenantId)
  }
  // Keys may not send the field at all, whatever its value.
  const fields = idsOf(route).filter(
    (field) => isRefused(field) && !(by === "key" && field.name === "replaces")
  )
  const needed = ({ kind, name, required }: Field) => {
    const field = `${twinOf(keyOf(route))} ${name}`
    const isOfAgent = by !== "key" && kind === "AgentId" && !sentAlone.has(field)
    return required || isOfAgent || alwaysSent.has(field)
  }
  const withOneForeignId = fields.map((foreign) =>
    requestOf(route, (field) => {
      const isForeign = field.place === foreign.place && field.name === foreign.name
      if (isForeign) return victim.ids[field.kind]
      return needed(field) || companions.get(foreign.name) === field.name ? mine.ids[field.kind] : undefined
    })
  )
  const withAllForeignIds = requestOf(route, (field) => (needed(field) ? victim.ids[field.kind] : undefined))
  return idsOf(route).filter(needed).length > 1 ? [...withOneForeignId, withAllForeignIds] : withOneForeignId
}

/** The path of `route` with ids that do not exist. */
export const unknownResourcePath = (route: Route): string =>
  route.path.replace(numberParameter, "1").replace(/:\w+/g, "none_1")
