/**
 * The public API described by its own declarations: `/openapi.json`, the compact description,
 * `/openapi.full.json` with every schema, and `/docs`, where it can be tried out; and the management interface. None of them wears the envelope.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpLayerRouter from "@effect/platform/HttpLayerRouter"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { compact, Documented, full } from "./Description.ts"
import { managed } from "./manage/ManageDescription.ts"

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

/** The page's own colours are light ones. Focus stays visible, and what is dark stays legible. */
const style = `<style>
:root { color-scheme: light dark }
.swagger-ui :focus-visible { outline: 3px solid #2563eb; outline-offset: 2px }
@media (prefers-color-scheme: dark) {
  html { background: #15181d }
  body { filter: invert(0.9) hue-rotate(180deg); background: #fff }
}
</style></head>`

/** The page with {@link style} in its head. */
const styled = (response: HttpServerResponse.HttpServerResponse) =>
  response.body._tag === "Uint8Array"
    ? HttpServerResponse.html(new TextDecoder().decode(response.body.body).replace("</head>", style))
    : response

const json = (body: unknown) =>
  HttpServerResponse.unsafeJson(body, { headers: { "cache-control": "public, max-age=300" } })

/** Adds the routes. */
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
      "/api/manage/v1/openapi.json",
      Effect.sync(() => json(managed()))
    )
    yield* router.get(
      "/docs",
      Effect.map(Effect.orDie(Effect.flatten(cachedPage)), (response) =>
        HttpServerResponse.setHeaders(styled(response), {
          "cache-control": "public, max-age=300",
          "content-security-policy": contentSecurityPolicy
        })
      )
    )
  })
)
