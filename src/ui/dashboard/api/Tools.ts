/** Tools that an agent may call. */
import { queryOptions } from "@tanstack/react-query"
import { call } from "./Client.ts"

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

export const tools = (agentId: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "tools"],
    queryFn: ({ signal }) =>
      call<{ readonly tools: ReadonlyArray<Tool> }>("GET", `/api/agents/${agentId}/tools`, { signal }).then(
        (data) => data.tools
      )
  })

export const createTool = (agentId: string, body: ToolInput) =>
  call("POST", `/api/agents/${agentId}/tools`, { body })

export const patchTool = (id: string, version: number, body: ToolInput) =>
  call("PATCH", `/api/tools/${id}`, { body, version })

export const deleteTool = (id: string) => call("DELETE", `/api/tools/${id}`)
