/** Tools that an agent may call. */
import type {
  Binding as Bound,
  CreateTool,
  PatchTool,
  Tool as Declared
} from "../../../domain/agents/Tool.ts"
import type { ToolTrial, ToolTrialRequest } from "../../../domain/agents/ToolTrial.ts"
import type { ToolSignInProblem } from "../../../domain/agents/ToolConnection.ts"
import type { BegunConnection, ToolPage } from "../../../http/hosted/agents/ToolsApi.ts"
import { call, pagesOf } from "./Client.ts"
import { membersOf } from "./membersOf.ts"

export type Tool = typeof Declared.Encoded
/** A new tool. For a change, all fields are optional. */
export type ToolInput = typeof CreateTool.Encoded
export type Binding = typeof Bound.Encoded

export type Method = NonNullable<NonNullable<Tool["http"]>["method"]>
export const methods = membersOf<Method>({
  GET: true,
  POST: true,
  PUT: true,
  PATCH: true,
  DELETE: true
})
export type AuthKind = Tool["auth"]["kind"]
export const authKinds = membersOf<AuthKind>({
  none: true,
  bearer: true,
  header: true,
  basic: true,
  oauth: true
})
export type Grant = NonNullable<Tool["auth"]["grant"]>
export type SignInProblem = typeof ToolSignInProblem.Encoded

export const tools = (agentId: string) =>
  pagesOf<typeof ToolPage.Encoded>(["agents", agentId, "tools"], `/api/agents/${agentId}/tools`, {
    limit: 100
  })

export const createTool = (agentId: string, body: ToolInput) =>
  call<unknown, typeof CreateTool.Encoded>("POST", `/api/agents/${agentId}/tools`, { body })

export const patchTool = (id: string, version: number, body: ToolInput) =>
  call<unknown, typeof PatchTool.Encoded>("PATCH", `/api/tools/${id}`, { body, version })

/** The address of the sign-in page; null if the tool connects without a user. */
export const connectTool = (id: string) =>
  call<typeof BegunConnection.Encoded>("POST", `/api/tools/${id}/connection`)

export const disconnectTool = (id: string) => call("DELETE", `/api/tools/${id}/connection`)

/** Calls a tool as a turn would. Without `arguments`, it only lists the tool's functions. */
export const tryTool = (id: string, body: typeof ToolTrialRequest.Encoded) =>
  call<typeof ToolTrial.Encoded, typeof ToolTrialRequest.Encoded>("POST", `/api/tools/${id}/trial`, { body })

export const deleteTool = (id: string) => call("DELETE", `/api/tools/${id}`)
