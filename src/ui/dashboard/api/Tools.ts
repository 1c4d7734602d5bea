/** Tools that an agent may call. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import { call, firstPage } from "./Client.ts"

export const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const
export type Method = (typeof methods)[number]
export const authKinds = ["none", "bearer", "header", "basic"] as const
export type AuthKind = (typeof authKinds)[number]

interface Auth {
  readonly kind: AuthKind
  readonly name?: string
  readonly header?: string
  readonly slot?: string
}

export interface Binding {
  readonly from: string
  readonly to: string
}

interface Definition {
  readonly name: string
  readonly description: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly http?: {
    readonly method: Method
    readonly url: string
    readonly headers?: Readonly<Record<string, string>>
    readonly query?: Readonly<Record<string, string>>
    readonly body?: Readonly<Record<string, unknown>>
  }
  readonly mcp?: { readonly url: string }
  readonly bindings: ReadonlyArray<Binding>
  readonly timeout: number
}

export interface Tool extends Definition {
  readonly id: string
  readonly auth: Auth & { readonly hasSecret: boolean }
  readonly version: number
  readonly updatedAt: string
}

/** Without `secret` a stored one stays. */
export interface ToolInput extends Partial<Definition> {
  readonly auth?: Auth & { readonly secret?: string }
}

interface ToolPage {
  readonly tools: ReadonlyArray<Tool>
  readonly nextCursor: string | null
}

export const tools = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "tools"],
    queryFn: ({ pageParam, signal }) =>
      call<ToolPage>("GET", `/api/agents/${agentId}/tools`, {
        query: { limit: 100, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

export const createTool = (agentId: string, body: ToolInput) =>
  call("POST", `/api/agents/${agentId}/tools`, { body })

export const patchTool = (id: string, version: number, body: ToolInput) =>
  call("PATCH", `/api/tools/${id}`, { body, version })

export const deleteTool = (id: string) => call("DELETE", `/api/tools/${id}`)
