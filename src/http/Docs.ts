/**
 * The public API described by its own declarations: `/openapi.json`, the compact description of specification 9,
 * `/openapi.full.json` with every schema, and `/docs`, where it can be tried out. None of them wears the envelope.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpLayerRouter from "@effect/platform/HttpLayerRouter"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import { PublicApi } from "./Api.ts"
import * as Routes from "./Routes.ts"

const info = { title: "Spoke", version: "1" } as const

/** `:id` as OpenAPI writes it. */
const template = (path: string) => path.replace(/:(\w+)/g, "{$1}")

const parameters = (path: string) =>
  Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" }
  }))

const operation = ({ path, permission, statuses, summary, updatedAt }: Routes.Route) => ({
  summary,
  parameters: parameters(path),
  responses: Object.fromEntries(statuses.map((status) => [status, { description: "Success" }])),
  "x-permission": permission,
  "x-updated-at": updatedAt
})

/** Path parameters, success status codes, permissions and update timestamps; no schemas (specification 9). */
export const compact = () => {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of Routes.table(PublicApi)) {
    const path = template(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return { openapi: "3.1.0", info, paths }
}

/** The framework's own form of a decode error, which never leaves: the boundary answers `VALIDATION_ERROR`. */
const unsent = "#/components/schemas/HttpApiDecodeError"

const isUnsent = (member: unknown) => Predicate.hasProperty(member, "$ref") && member.$ref === unsent

/** `node` without the members of unions that are never sent. */
const sent = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.filter((member) => !isUnsent(member)).map(sent)
  if (!Predicate.isRecord(node)) return node
  const { HttpApiDecodeError: _, ...members } = node
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, sent(member)]))
}

const securitySchemes = {
  apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
  bearer: { type: "http", scheme: "bearer" }
}

const Documented = PublicApi.annotate(OpenApi.Title, info.title)
  .annotate(OpenApi.Version, info.version)
  .annotate(OpenApi.Transform, ({ components, paths, ...spec }) => ({
    ...spec,
    paths: sent(paths),
    components: { ...Object(sent(components)), securitySchemes },
    security: [{ apiKey: [] }, { bearer: [] }]
  }))

/** Every schema of the public API. */
export const full = () => OpenApi.fromApi(Documented)

/** The page's script and style are inline; it talks to this server alone. */
const contentSecurityPolicy =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Two megabytes that a start has no use for: loaded when somebody looks. */
const page = Effect.promise(() => import("@effect/platform/HttpApiSwagger")).pipe(
  Effect.flatMap((swagger) =>
    HttpLayerRouter.toHttpEffect(swagger.layerHttpLayerRouter({ api: Documented, path: "/docs" }))
  ),
  Effect.scoped
)

const json = (body: unknown) =>
  HttpServerResponse.unsafeJson(body, { headers: { "cache-control": "public, max-age=300" } })

/** Adds the three routes. */
export const layer: Layer.Layer<never> = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const cachedPage = yield* Effect.cached(page)
    yield* router.get(
      "/openapi.json",
      Effect.sync(() => json(compact()))
    )
    yield* router.get(
      "/openapi.full.json",
      Effect.sync(() => json(full()))
    )
    yield* router.get(
      "/docs",
      Effect.map(Effect.orDie(Effect.flatten(cachedPage)), (response) =>
        HttpServerResponse.setHeaders(response, {
          "cache-control": "public, max-age=300",
          "content-security-policy": contentSecurityPolicy
        })
      )
    )
  })
)
