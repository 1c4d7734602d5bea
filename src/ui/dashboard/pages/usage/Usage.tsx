/** Usage of the period, by agent and day. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "wouter"
import { usage, type Usage as Report } from "../../api/Usage.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Figure, Figures } from "../../components/charts/Figures.tsx"
import { Loaded, Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { BudgetNotice, Budgets } from "./Budgets.tsx"
import { CostText } from "./CostText.tsx"
import { Days } from "./Days.tsx"
import { Storage } from "./Storage.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

const Totals = ({ report }: { readonly report: Report }) => {
  const t = useText(words)
  const { money, number, percent } = useFormat()
  const { cost, ingestionJobs, sources, tokens, turns } = report
  const figureWithLimit = (title: string, used: number, limit: number) => {
    const share = limit === 0 ? 0 : used / limit
    return (
      <Figure
        title={title}
        value={number(used)}
        note={t.ofLimit(number(limit), percent(share))}
        share={share}
      />
    )
  }
  return (
    <Figures>
      {figureWithLimit(t.turns, turns.used, turns.limit)}
      {figureWithLimit(t.jobs, ingestionJobs.used, ingestionJobs.limit)}
      {figureWithLimit(t.sources, sources.active, sources.limit)}
      <Figure
        title={t.tokens}
        value={number(tokens.input + tokens.output)}
        note={t.split(number(tokens.input), number(tokens.output))}
      />
      <Figure
        title={t.cost}
        value={cost.nanoUsd === null ? t.unknown : money(cost.nanoUsd)}
        {...(cost.unpricedCalls === 0 || cost.nanoUsd === null
          ? {}
          : { note: t.unpriced(cost.unpricedCalls) })}
      />
    </Figures>
  )
}

/** The agents, with one row for deleted ones if they have used anything. */
const agentRows = (
  { agents, deletedAgents }: Report,
  name: string
): ReadonlyArray<Omit<Report["agents"][number], "agentId"> & { readonly agentId: string | null }> => {
  const { cost, ingestionJobs, turns } = deletedAgents
  const isUsed = turns + ingestionJobs + cost.unpricedCalls + (cost.nanoUsd ?? 0) > 0
  return isUsed ? [...agents, { ...deletedAgents, agentId: null, name, sources: 0, otherCalls: [] }] : agents
}

const Usage = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const { day, number } = useFormat()
  const query = useQuery(usage)
  return (
    <Page title={t.title} lead={t.lead} guide="usage">
      <Loaded query={query}>
        {(report) => (
          <>
            <p className={css["term"]}>
              {t.period(day(report.period.start), day(report.period.end))}{" "}
              {report.turns.overageEnabled ? <Badge tone="accent">{t.overage}</Badge> : null}
            </p>
            <BudgetNotice agents={report.agents} budgets={report.budgets} />
            <Totals report={report} />
            <Budgets
              agents={report.agents}
              budgets={report.budgets}
              mayChange={atLeast(user.role, "admin")}
            />
            <Days days={report.days} period={report.period} />
            <Table
              label={t.agents}
              rows={agentRows(report, t.deletedAgents)}
              keyOf={({ agentId }) => agentId ?? ""}
              columns={[
                {
                  title: t.agent,
                  cell: ({ agentId, name }) =>
                    agentId === null ? (
                      name
                    ) : (
                      <Link data-row href={`/agents/${agentId}`}>
                        {name}
                      </Link>
                    )
                },
                { title: t.turns, alignEnd: true, cell: ({ turns }) => number(turns) },
                { title: t.jobs, alignEnd: true, cell: ({ ingestionJobs }) => number(ingestionJobs) },
                { title: t.sources, alignEnd: true, cell: ({ sources }) => number(sources) },
                {
                  title: t.tokens,
                  alignEnd: true,
                  cell: ({ tokens }) => number(tokens.input + tokens.output)
                },
                { title: t.cost, alignEnd: true, cell: ({ cost }) => <CostText cost={cost} /> }
              ]}
            />
            {report.models.length === 0 ? null : (
              <Table
                label={t.models}
                rows={report.models}
                keyOf={({ model }) => model}
                columns={[
                  { title: t.model, cell: ({ model }) => model },
                  { title: t.calls, alignEnd: true, cell: ({ calls }) => number(calls) },
                  {
                    title: t.tokens,
                    alignEnd: true,
                    cell: ({ tokens }) => number(tokens.input + tokens.output)
                  },
                  { title: t.cost, alignEnd: true, cell: ({ cost }) => <CostText cost={cost} /> }
                ]}
              />
            )}
            {report.otherCalls.length === 0 ? null : (
              <Table
                label={t.otherCalls}
                rows={report.otherCalls}
                keyOf={({ kind }) => kind}
                columns={[
                  { title: t.otherCalls, cell: ({ kind }) => t[kind] },
                  { title: t.calls, alignEnd: true, cell: ({ calls }) => number(calls) },
                  {
                    title: t.tokens,
                    alignEnd: true,
                    cell: ({ tokens }) => number(tokens.input + tokens.output)
                  },
                  { title: t.cost, alignEnd: true, cell: ({ cost }) => <CostText cost={cost} /> }
                ]}
              />
            )}
            <Storage storage={report.storage} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

export default Usage
