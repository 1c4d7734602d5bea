/**
 * Method and path of every declared public route, so that the client needs no schemas. The compiler checks that the
 * list is complete; test/library/Client.test.ts checks each route against its declaration.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import type { PublicApi } from "../http/PublicApi.ts"

type Groups = typeof PublicApi extends HttpApi.HttpApi<string, infer G, infer _E, infer _R> ? G : never
type EndpointsOf<Name extends string> = HttpApiGroup.HttpApiGroup.EndpointsWithName<Groups, Name>

export interface Route {
  readonly method: string
  readonly path: string
}

type Table = {
  readonly [G in HttpApiGroup.HttpApiGroup.Name<Groups>]: {
    readonly [E in HttpApiEndpoint.HttpApiEndpoint.Name<EndpointsOf<G>>]: Route
  }
}

const get = (path: string): Route => ({ method: "GET", path })
const post = (path: string): Route => ({ method: "POST", path })

export const routes = {
  chat: { complete: post("/v1/chat"), stream: post("/v1/chat/stream") },
  openai: { completions: post("/v1/chat/completions"), models: get("/v1/models") },
  retrieve: { retrieve: post("/v1/retrieve") },
  crawl: { report: get("/v1/sources/:id/crawl"), dryRun: post("/v1/sources/dry-run") },
  sources: {
    list: get("/v1/sources"),
    create: post("/v1/sources"),
    upload: post("/v1/sources/upload"),
    get: get("/v1/sources/:id"),
    embedding: get("/v1/sources/:id/embedding"),
    patch: { method: "PATCH", path: "/v1/sources/:id" },
    remove: { method: "DELETE", path: "/v1/sources/:id" },
    sync: post("/v1/sources/:id/sync")
  },
  ingestionJobs: { get: get("/v1/ingestion-jobs/:id") },
  conversations: {
    list: get("/v1/conversations"),
    get: get("/v1/conversations/:id"),
    messages: get("/v1/conversations/:id/messages")
  },
  agentRuns: {
    trace: get("/v1/agent-runs/:runId"),
    stop: post("/v1/agent-runs/:runId/stop"),
    follow: get("/v1/chat/stream/:runId"),
    followChat: get("/v1/chat/stream/:chatId/stream")
  },
  usage: { current: get("/v1/usage") },
  visitorTokens: { create: post("/v1/visitor-tokens") }
} satisfies Table
