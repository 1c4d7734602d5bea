/** Parts of one thing side by side; each has an address of its own. On a phone many parts are one list to choose from. */
import type { ReactNode } from "react"
import { Tab, TabList, TabPanel, Tabs as AriaTabs } from "react-aria-components"
import { Select } from "./Field.tsx"
import css from "./Tabs.module.css"

/** Maximum number of tabs that stay tabs on a phone: more take several lines. */
const maxWrapped = 3

interface TabsProps {
  readonly label: string
  /** Id, title and what it shows, in order. */
  readonly tabs: ReadonlyArray<readonly [string, string, ReactNode]>
  readonly current: string
  readonly onChange: (id: string) => void
}

export const Tabs = ({ label, tabs, current, onChange }: TabsProps) => (
  <AriaTabs
    className={css["tabs"] ?? ""}
    selectedKey={current}
    keyboardActivation="manual"
    onSelectionChange={(key) => onChange(String(key))}
  >
    {tabs.length > maxWrapped ? (
      <div className={css["choice"]}>
        <Select
          compact
          label={label}
          options={tabs.map(([id, title]) => [id, title] as const)}
          value={current}
          onChange={onChange}
        />
      </div>
    ) : null}
    <TabList aria-label={label} className={`${css["list"]} ${tabs.length > maxWrapped ? css["many"] : ""}`}>
      {tabs.map(([id, title]) => (
        <Tab key={id} id={id} className={css["tab"] ?? ""}>
          {title}
        </Tab>
      ))}
    </TabList>
    {tabs.map(([id, , content]) => (
      <TabPanel key={id} id={id} className={css["panel"] ?? ""}>
        {content}
      </TabPanel>
    ))}
  </AriaTabs>
)
