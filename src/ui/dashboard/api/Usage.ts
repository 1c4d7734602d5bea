/** What the tenant has used of its period. */
import { queryOptions } from "@tanstack/react-query"
import { call } from "./Client.ts"

export interface Tokens {
  readonly input: number
  readonly output: number
}

export interface AgentUsage {
  readonly agentId: string
  readonly name: string
  readonly turns: number
  readonly ingestionJobs: number
  readonly sources: number
  readonly tokens: Tokens
}

export interface DayUsage {
  readonly date: string
  readonly turns: number
  readonly tokens: Tokens
}

export interface Usage {
  readonly period: { readonly start: string; readonly end: string }
  readonly turns: { readonly used: number; readonly limit: number; readonly overageEnabled: boolean }
  readonly ingestionJobs: { readonly used: number; readonly limit: number }
  readonly sources: { readonly active: number; readonly limit: number }
  readonly tokens: Tokens
  readonly agents: ReadonlyArray<AgentUsage>
  readonly days: ReadonlyArray<DayUsage>
}

export const usage = queryOptions({
  queryKey: ["usage"],
  queryFn: ({ signal }) => call<Usage>("GET", "/api/usage", { signal })
})
