// Format numbers as people read them.

const UNITS = [
  [1024 ** 3, "GB"],
  [1024 ** 2, "MB"],
  [1024, "KB"],
  [1, "bytes"],
];

export const milliseconds = (n) => `${n.toFixed(n < 10 ? 1 : 0)} ms`;

export function sized(n) {
  const [unit, name] = UNITS.find(([each]) => n >= each) ?? [1, "bytes"];
  return `${(n / unit).toFixed(n >= unit * 10 || unit === 1 ? 0 : 1).replace(".0", "")} ${name}`;
}
