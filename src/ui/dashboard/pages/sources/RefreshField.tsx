/** The schedule on which a source is read again. */
import type { SourceConfig } from "../../api/Sources.ts"
import { Select } from "../../components/Field.tsx"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  { refresh: "Automatic sync", off: "Off", daily: "Every day", weekly: "Every week" },
  { refresh: "Automatische Synchronisierung", off: "Aus", daily: "Täglich", weekly: "Wöchentlich" }
)

export type RefreshInterval = NonNullable<SourceConfig["refresh"]>

interface Props {
  readonly value: RefreshInterval
  readonly onChange: (value: RefreshInterval) => void
}

export const RefreshField = ({ onChange, value }: Props) => {
  const t = useText(words)
  return (
    <Select
      label={t.refresh}
      options={[
        ["off", t.off],
        ["daily", t.daily],
        ["weekly", t.weekly]
      ]}
      value={value}
      onChange={onChange}
    />
  )
}
