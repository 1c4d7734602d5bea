/** Parts of one thing side by side; each has an address of its own. */
import type { ReactNode } from "react"
import { Tab, TabList, TabPanel, Tabs as AriaTabs } from "react-aria-components"
import css from "./Tabs.module.css"

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
    <TabList aria-label={label} className={css["list"] ?? ""}>
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
