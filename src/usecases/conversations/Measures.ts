/** The report of the measures: figures over all turns of a period, in total and for each value of a dimension. */
import type { MeasuredBy, Measures, MeasuresReport } from "../../domain/conversations/Insights.ts"
import { maxMeasuresRows, type MeasuresRow, type ReportScope } from "../../store/conversations/Insights.ts"

const timesOf = ([median = 0, p95 = 0]: ReadonlyArray<number>) => ({ median, p95 })

const measuresOf = (row: MeasuresRow): Measures => {
  const { answered, failed, handedOver, people, refused, repeated, stopped, turns, up, down } = row
  const { cost, partly, supported, unpricedCalls, unsupported } = row
  const checked = supported + partly + unsupported
  return {
    turns,
    people,
    answered,
    refused,
    handedOver,
    stopped,
    failed,
    repeated,
    rated: { up, down },
    resolutionRate: turns === 0 ? null : row.resolved / turns,
    satisfaction: up + down === 0 ? null : up / (up + down),
    timeToFirstText: row.firstText === null ? null : timesOf(row.firstText),
    timeToSettle: row.settle === null ? null : timesOf(row.settle),
    tokens: { input: row.input, output: row.output },
    cost: { nanoUsd: cost ?? (unpricedCalls === 0 ? 0 : null), unpricedCalls },
    grounding: {
      yes: supported,
      partly,
      no: unsupported,
      share: checked === 0 ? null : supported / checked
    }
  }
}

const emptyMeasures: MeasuresRow = {
  key: null,
  name: null,
  isTotal: true,
  turns: 0,
  people: 0,
  answered: 0,
  refused: 0,
  handedOver: 0,
  stopped: 0,
  failed: 0,
  repeated: 0,
  up: 0,
  down: 0,
  resolved: 0,
  firstText: null,
  settle: null,
  input: 0,
  output: 0,
  cost: null,
  unpricedCalls: 0,
  supported: 0,
  partly: 0,
  unsupported: 0
}

/** The report of the rows `found`, which are in order and may be one too many. */
export const reportOf = (
  { from, to }: Pick<ReportScope, "from" | "to">,
  by: MeasuredBy,
  found: ReadonlyArray<MeasuresRow>
): MeasuresReport => {
  const rows = found.flatMap((row) =>
    row.isTotal || row.key === null
      ? []
      : [{ key: row.key, name: by === "agent" ? row.name : null, ...measuresOf(row) }]
  )
  return {
    from,
    to,
    by,
    total: measuresOf(found.find(({ isTotal }) => isTotal) ?? emptyMeasures),
    isCut: rows.length > maxMeasuresRows,
    rows: rows.slice(0, maxMeasuresRows)
  }
}
