/** Failed turns, grouped by question, and measures of all turns. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query"
import type {
  InsightGroup as Group,
  InsightPage,
  Measures as Measured,
  MeasuredBy as By,
  MeasuresReport as Report,
  FailureKind as Kind
} from "../../../domain/conversations/Insights.ts"
import { call, pagesOf } from "./Client.ts"

export type InsightGroup = typeof Group.Encoded
export type Measures = typeof Measured.Encoded
export type MeasuredBy = typeof By.Encoded
export type MeasuresReport = typeof Report.Encoded
export type FailureKind = typeof Kind.Encoded

export const insights = (agentId: string | undefined) =>
  pagesOf<typeof InsightPage.Encoded>(["insights", agentId], "/api/insights", { agentId })

export const measures = (agentId: string | undefined) =>
  queryOptions({
    queryKey: ["measures", agentId],
    queryFn: ({ signal }) => call<MeasuresReport>("GET", "/api/measures", { query: { agentId }, signal })
  })

/** Measures by another dimension than the day. The previous report is shown until this one is loaded. */
export const measuresBy = (agentId: string | undefined, by: MeasuredBy) =>
  queryOptions({
    queryKey: ["measures", agentId, by],
    queryFn: ({ signal }) => call<MeasuresReport>("GET", "/api/measures", { query: { agentId, by }, signal }),
    placeholderData: keepPreviousData
  })
