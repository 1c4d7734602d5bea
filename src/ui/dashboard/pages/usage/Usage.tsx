/** Usage of the period, by agent and day. */
import { useQuery } from "@tanstack/react-query"
import { usage, type Usage as Report } from "../../api/Usage.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Card, Loaded, Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { BudgetNotice, Budgets } from "./Budgets.tsx"
import { CostText } from "./CostText.tsx"
import { Days } from "./Days.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

interface MeterProps {
  readonly title: string
  readonly used: number
  readonly limit: number
}

const Meter = ({ title, used, limit }: MeterProps) => {
  const t = useText(words)
  const { number, percent } = useFormat()
  const share = limit === 0 ? 1 : used / limit
  return (
    <div className={css["meter"]}>
      <span className={css["term"]}>{title}</span>
      <span className={css["figure"]}>{number(used)}</span>
      <span className={css["term"]}>{t.ofLimit(number(limit), percent(share))}</span>
      <span className={css["track"]} aria-hidden>
        <span
          className={share >= 0.9 ? css["full"] : css["bar"]}
          style={{ width: `${Math.min(100, share * 100)}%` }}
        />
      </span>
    </div>
  )
}

const Totals = ({ report }: { readonly report: Report }) => {
  const t = useText(words)
  const { money, number } = useFormat()
  const { cost, ingestionJobs, sources, tokens, turns } = report
  return (
    <div className={css["totals"]}>
      <Card>
        <Meter title={t.turns} used={turns.used} limit={turns.limit} />
        {turns.overageEnabled ? <Badge tone="accent">{t.overage}</Badge> : null}
      </Card>
      <Card>
        <Meter title={t.jobs} used={ingestionJobs.used} limit={ingestionJobs.limit} />
      </Card>
      <Card>
        <Meter title={t.sources} used={sources.active} limit={sources.limit} />
      </Card>
      <Card>
        <div className={css["meter"]}>
          <span className={css["term"]}>{t.tokens}</span>
          <span className={css["figure"]}>{number(tokens.input + tokens.output)}</span>
          <span className={css["term"]}>{t.split(number(tokens.input), number(tokens.output))}</span>
        </div>
      </Card>
      <Card>
        <div className={css["meter"]}>
          <span className={css["term"]}>{t.cost}</span>
          <span className={css["figure"]}>{cost.nanoUsd === null ? t.unknown : money(cost.nanoUsd)}</span>
          {cost.unpricedCalls === 0 || cost.nanoUsd === null ? null : (
            <span className={css["term"]}>{t.unpriced(cost.unpricedCalls)}</span>
          )}
        </div>
      </Card>
    </div>
  )
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
            <p className={css["term"]}>{t.period(day(report.period.start), day(report.period.end))}</p>
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
              rows={report.agents}
              keyOf={({ agentId }) => agentId}
              columns={[
                { title: t.agent, cell: ({ name }) => name },
                { title: t.turns, end: true, cell: ({ turns }) => number(turns) },
                { title: t.jobs, end: true, cell: ({ ingestionJobs }) => number(ingestionJobs) },
                { title: t.sources, end: true, cell: ({ sources }) => number(sources) },
                {
                  title: t.tokens,
                  end: true,
                  cell: ({ tokens }) => number(tokens.input + tokens.output)
                },
                { title: t.cost, end: true, cell: ({ cost }) => <CostText cost={cost} /> }
              ]}
            />
            {report.models.length === 0 ? null : (
              <Table
                label={t.models}
                rows={report.models}
                keyOf={({ model }) => model}
                columns={[
                  { title: t.model, cell: ({ model }) => model },
                  { title: t.calls, end: true, cell: ({ calls }) => number(calls) },
                  {
                    title: t.tokens,
                    end: true,
                    cell: ({ tokens }) => number(tokens.input + tokens.output)
                  },
                  { title: t.cost, end: true, cell: ({ cost }) => <CostText cost={cost} /> }
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
                  { title: t.calls, end: true, cell: ({ calls }) => number(calls) },
                  {
                    title: t.tokens,
                    end: true,
                    cell: ({ tokens }) => number(tokens.input + tokens.output)
                  },
                  { title: t.cost, end: true, cell: ({ cost }) => <CostText cost={cost} /> }
                ]}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

export default Usage
