/** The measures of agents, versions, channels or languages, side by side. */
import type { MeasuredBy, MeasuresReport } from "../../api/Insights.ts"
import { Select } from "../../components/Field.tsx"
import { Card } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { words as conversationWords } from "../conversations/words.ts"
import { CostText } from "../usage/CostText.tsx"
import css from "./Insights.module.css"
import { words } from "./words.ts"

/** The dimensions that can be compared. Versions can be compared only within one agent. */
export const dimensionsOf = (agentId: string | undefined): readonly [MeasuredBy, ...Array<MeasuredBy>] =>
  agentId === undefined ? ["agent", "channel", "language"] : ["version", "channel", "language"]

interface Props {
  readonly report: MeasuresReport
  readonly dimensions: ReadonlyArray<MeasuredBy>
  readonly by: MeasuredBy
  readonly onChange: (by: string) => void
}

export const Comparison = ({ by, dimensions, onChange, report }: Props) => {
  const t = useText(words)
  const channels: Readonly<Record<string, unknown>> = useText(conversationWords)
  const { language, number, percent } = useFormat()
  const titles = {
    agent: t.byAgent,
    version: t.byVersion,
    channel: t.byChannel,
    language: t.byLanguage,
    day: ""
  }
  const share = (value: number | null) => (value === null ? "–" : percent(value))
  const nameOf = ({ key, name }: MeasuresReport["rows"][number]): string => {
    switch (report.by) {
      case "version":
        return t.version(key)
      case "channel":
        return String(channels[key] ?? key)
      case "language":
        return key === "unknown" ? t.otherLanguage : language(key)
      default:
        return name ?? key
    }
  }
  return (
    <Card
      title={t.compared}
      actions={
        <Select
          compact
          label={t.by}
          options={dimensions.map((one) => [one, titles[one]] as const)}
          value={by}
          onChange={onChange}
        />
      }
    >
      {report.isCut ? <p className={css["soft"]}>{t.cut(number(report.rows.length))}</p> : null}
      <Table
        label={t.compared}
        rows={report.rows}
        keyOf={({ key }) => key}
        columns={[
          { title: titles[report.by], cell: nameOf },
          { title: t.turns, alignEnd: true, cell: ({ turns }) => number(turns) },
          { title: t.refusedTurns, alignEnd: true, cell: ({ refused }) => number(refused) },
          { title: t.resolved, alignEnd: true, cell: ({ resolutionRate }) => share(resolutionRate) },
          { title: t.satisfaction, alignEnd: true, cell: ({ satisfaction }) => share(satisfaction) },
          { title: t.supported, alignEnd: true, cell: ({ grounding }) => share(grounding.share) },
          {
            title: t.speed,
            alignEnd: true,
            cell: ({ timeToFirstText: times }) =>
              times === null ? "–" : t.seconds(number(Math.round(times.median / 100) / 10))
          },
          { title: t.cost, alignEnd: true, cell: ({ cost }) => <CostText cost={cost} /> }
        ]}
      />
    </Card>
  )
}
