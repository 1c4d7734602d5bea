/** Tabs, each with its own address. */
import { Link } from "wouter"
import css from "./Tabs.module.css"

interface TabsProps {
  readonly label: string
  /** Address and title of each tab. */
  readonly tabs: ReadonlyArray<readonly [string, string]>
  /** The address of the current tab. */
  readonly current: string
}

export const Tabs = ({ label, tabs, current }: TabsProps) => (
  <nav aria-label={label}>
    <ul className={css["tabs"]}>
      {tabs.map(([href, title]) => (
        <li key={href}>
          <Link href={href} className={css["tab"] ?? ""} aria-current={href === current ? "page" : undefined}>
            {title}
          </Link>
        </li>
      ))}
    </ul>
  </nav>
)
