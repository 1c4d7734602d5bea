/** Series over days as bars or lines. It brings the chart library: pages load it lazily. */
import {
  Bar,
  CartesianGrid,
  ComposedChart,
  Legend,
  Line,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis
} from "recharts"
import { useFormat } from "../../text/Format.ts"
import type { ChartProps } from "./series.ts"

const colours = ["var(--accent)", "var(--warn)"] as const

const Drawing = ({ days, kind, max, series, shown }: ChartProps) => {
  const { day } = useFormat()
  const axis = { fill: "var(--text-soft)", fontSize: 12 }
  return (
    <ResponsiveContainer>
      <ComposedChart
        data={days.map(({ date, values }) => ({ date, ...values }))}
        accessibilityLayer={false}
        margin={{ top: 8, right: 8, bottom: 0, left: 0 }}
      >
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis dataKey="date" tickFormatter={day} tick={axis} stroke="var(--line-strong)" minTickGap={24} />
        <YAxis
          width={60}
          tick={axis}
          stroke="var(--line-strong)"
          domain={[0, max ?? "auto"]}
          tickFormatter={(value) => shown(Number(value))}
        />
        <Tooltip
          cursor={{ fill: "var(--sunken)", stroke: "var(--line-strong)" }}
          contentStyle={{ background: "var(--raised)", border: "1px solid var(--line)" }}
          labelFormatter={(date) => day(String(date))}
          formatter={(value) => shown(Number(value))}
        />
        {series.length === 1 ? null : (
          <Legend
            iconType={kind === "line" ? "plainline" : "square"}
            formatter={(name) => <span style={{ color: "var(--text)" }}>{String(name)}</span>}
          />
        )}
        {series.map(({ key, title }, place) => {
          const colour = colours[place % colours.length] ?? colours[0]
          const common = { dataKey: key, name: title, isAnimationActive: false }
          return kind === "line" ? (
            <Line
              key={key}
              {...common}
              stroke={colour}
              strokeWidth={2}
              // The second line differs in more than its colour.
              {...(place === 0 ? {} : { strokeDasharray: "5 3" })}
              // A day between two without data has no line that would show it.
              dot={{ r: 2.5, fill: colour, strokeWidth: 0 }}
            />
          ) : (
            <Bar key={key} {...common} fill={colour} maxBarSize={42} radius={[4, 4, 0, 0]} />
          )
        })}
      </ComposedChart>
    </ResponsiveContainer>
  )
}

export default Drawing
