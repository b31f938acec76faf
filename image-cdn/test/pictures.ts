/** Images and other bodies that tests send; they work in Node and in the Worker's runtime. */

export const JPEG = fromBase64(
  "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8yb" +
    "qmx5moq6T/wAALCAAoAB0BAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIh" +
    "MUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhI" +
    "WGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AIwP" +
    "K4H+r/8AQf8A638vp0kooopANvA6fypaKKKUDPA6/wA6Siiingo3LlgfUDOaZRRRX//Z",
);

export const PNG = fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAB0AAAAoCAIAAACNRmZGAAABAUlEQVR4nO3QEZeGQABG4btL4WAYhmE4GA6GYRiGYRiGg2EYDoZhGIaD4f6FPX" +
    "veYM/57g944H4BwzCg7nsYhnEc9S7Q9/00TXoX6Lpunme9C7Rt673Xu0DTNMuy6F2grut1XfUu4Jzbtk3vAlVVhRD0LmCt3fdd7wJlWR7HoXeB" +
    "oijO89S7QJ7n13XpXSDLsvu+9S6QpmmMUe8CxpjnefQukCTJK+7v9b+4z/MYY/QuEGNM01TvAvd9Z1mmd4HruvI817vAeZ5FUehd4DiOsiz1Lr" +
    "Dvu7VW7wIhhKqq9C6wbZtzTu8C67rWda13gWVZmqbRu4D3/hWXNz583I/7/90fjUpUUPDo5m0AAAAASUVORK5CYII=",
);

export const HTML = text(
  "<!DOCTYPE html><html><title>Google Drive - Virus scan warning</title>" + "<p>scan</p>".repeat(40),
);
export const LOCKOUT_PAGE = text(
  `<html><head><title>Sorry</title></head><!--${" ".repeat(400)}--><p>Our systems have detected unusual traffic from your network.`,
);
export const SVG = text(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>${" ".repeat(200)}`);

/** Another JPEG for each number: a comment of its own after the first marker. */
export function jpegNumber(number: number): Uint8Array<ArrayBuffer> {
  const comment = [0xff, 0xfe, 0x00, 0x06, ...new Uint8Array(new Uint32Array([number]).buffer)];
  return new Uint8Array([...JPEG.subarray(0, 2), ...comment, ...JPEG.subarray(2)]);
}

export function text(content: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(content) as Uint8Array<ArrayBuffer>;
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

export function fromBase64(content: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
}
